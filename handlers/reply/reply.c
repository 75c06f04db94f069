#include "handlers/reply/reply.h"

#include <stdlib.h>

#include "handlers/reply/json_memory.h"
#include "handlers/reply/problem.h"

void reply_json(struct http_response *response, unsigned status, json_t *json)
{
    bool whole = json != NULL && !json_memory_failed();
    char *text = !whole ? NULL : json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(REPLY_DIGITS));
    json_decref(json);
    if (text != NULL && json_memory_failed()) { /* a member was printed without its name */
        free(text);
        text = NULL;
    }
    if (text == NULL) {
        problem_reply(response, PROBLEM_UNAVAILABLE, "out of memory");
        return;
    }
    response->status = status;
    response->content_type = "application/json";
    response->body = text;
    response->body_n = strlen(text);
}

void reply_text(struct http_response *response, unsigned status, const char *content_type,
    const char *text, size_t n)
{
    char *copy = malloc(n == 0 ? 1 : n);
    if (copy == NULL) {
        problem_reply(response, PROBLEM_UNAVAILABLE, "out of memory");
        return;
    }
    memcpy(copy, text, n);
    response->status = status;
    response->content_type = content_type;
    response->body = copy;
    response->body_n = n;
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
