#include "handlers/reply/reply.h"

#include <stdlib.h>

#include "handlers/reply/json_memory.h"
#include "handlers/reply/problem.h"

/* @json as text, which the caller owns.  The reference is taken over.  NULL: memory is out for the
 * text, or was out for a member. */
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

/* Answer with @text, a block that is taken over.  NULL: memory is out. */
static void reply_block(
    struct http_response *response, unsigned status, const char *content_type, char *text, size_t n)
{
    if (text == NULL) {
        (void)problem_no_memory(response);
        return;
    }
    response->status = status;
    response->content_type = content_type;
    response->body = text;
    response->body_n = n;
}

void reply_put_real(struct buffer *out, double value)
{
    char text[40];
    json_t *json = json_real(value);
    size_t n =
        json_dumpb(json, text, sizeof(text), JSON_ENCODE_ANY | JSON_REAL_PRECISION(REPLY_DIGITS));
    json_decref(json);
    out->failed = out->failed || n == 0 || n > sizeof(text);
    if (!out->failed) {
        buffer_append(out, text, n);
    }
}

void reply_json(struct http_response *response, unsigned status, json_t *json)
{
    char *text = dump(json);
    reply_block(response, status, "application/json", text, text == NULL ? 0 : strlen(text));
}

void reply_json_with(
    struct http_response *response, json_t *rest, const char *name, struct buffer *value)
{
    char *head = dump(rest);
    struct buffer out;
    buffer_init(&out);
    out.failed = head == NULL || value->failed;
    if (!out.failed) {
        size_t n = strlen(head) - 1; /* all but the last brace */
        out.failed = !buffer_expect(&out, n + strlen(name) + value->n + sizeof(",\"\":}"));
        buffer_append(&out, head, n);
        buffer_text(&out, ",\"");
        buffer_text(&out, name);
        buffer_text(&out, "\":");
        buffer_append(&out, value->p, value->n);
        buffer_text(&out, "}");
    }
    free(head);
    buffer_release(value);
    if (out.failed) {
        buffer_release(&out);
    }
    reply_block(response, 200, "application/json", out.p, out.n);
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

bool reply_has_header(const struct http_response *response, const char *name)
{
    for (unsigned i = 0; i < response->n_headers; i++) {
        if (strcmp(response->headers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}
