#include "handlers/reply/reply.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/reply/json_memory.h"
#include "handlers/reply/problem.h"

/* The reference is taken over.  NULL: memory is out for the text, or was for a member. */
static char *dump(json_t *json)
{
    bool whole = json != NULL && !json_memory_failed();
    char *text = !whole ? NULL : json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(REPLY_DIGITS));
    json_decref(json);
    if (text != NULL && json_memory_failed()) { /* a member was printed without its name */
        free(text);
        text = NULL;
    }
    return text;
}

/* The block @text is taken over. */
static void reply_block(
    struct http_response *response, unsigned status, const char *content_type, char *text, size_t n)
{
    if (text == NULL) {
        problem_reply(response, PROBLEM_UNAVAILABLE, "out of memory");
        return;
    }
    response->status = status;
    response->content_type = content_type;
    response->body = text;
    response->body_n = n;
}

void reply_json(struct http_response *response, unsigned status, json_t *json)
{
    char *text = dump(json);
    reply_block(response, status, "application/json", text, text == NULL ? 0 : strlen(text));
}

void reply_flags(
    struct http_response *response, const char *name, const bool *flags, size_t n, json_t *rest)
{
    char *tail = dump(rest);
    size_t most =
        tail == NULL ? 0 : strlen(name) + strlen(tail) + n * sizeof("false,") + sizeof("{\"\":[],");
    char *text = tail == NULL ? NULL : malloc(most);
    size_t at = 0;
    if (text != NULL) {
        at = (size_t)snprintf(text, most, "{\"%s\":[", name);
        for (size_t i = 0; i < n; i++) {
            struct slice word = flags[i] ? SLICE("true,") : SLICE("false,");
            memcpy(text + at, word.p, word.n);
            at += word.n;
        }
        at -= n > 0 ? 1 : 0;
        at += (size_t)snprintf(text + at, most - at, "],%s", tail + 1);
    }
    free(tail);
    reply_block(response, 200, "application/json", text, at);
}

void reply_text(struct http_response *response, unsigned status, const char *content_type,
    const char *text, size_t n)
{
    char *copy = malloc(n == 0 ? 1 : n);
    if (copy != NULL && n > 0) {
        memcpy(copy, text, n);
    }
    reply_block(response, status, content_type, copy, n);
}

void reply_static(struct http_response *response, unsigned status, const char *content_type,
    const char *text, size_t n)
{
    reply_empty(response, status);
    response->content_type = content_type;
    response->static_body = text;
    response->body_n = n;
}

void reply_empty(struct http_response *response, unsigned status)
{
    response->status = status;
    response->content_type = NULL;
    free(response->body);
    response->body = NULL;
    response->static_body = NULL;
    response->body_n = 0;
}

void reply_header(struct http_response *response, const char *name, const char *text)
{
    if (response->n_headers < HTTP_HEADERS_MAX) {
        response->headers[response->n_headers++] = (struct http_header){.name = name, .text = text};
    }
}
