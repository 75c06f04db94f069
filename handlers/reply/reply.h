/* reply.h - answers that are what was asked for.
 *
 * Layer: handlers.  Thread-safe: no state.  The one place that turns JSON values into bodies.
 */
#ifndef HANDLERS_REPLY_REPLY_H
#define HANDLERS_REPLY_REPLY_H

#include <jansson.h>

#include "handlers/http/http.h"

/* Answer @status with @json, whose reference is taken over.  NULL, or no memory for all of
 * it (json_memory.h): a 503 problem. */
void reply_json(struct http_response *response, unsigned status, json_t *json);

static inline json_t *text_json(struct slice text)
{
    return json_stringn(text.p, text.n);
}

/* Answer @status with @n bytes of text, copied. */
void reply_text(struct http_response *response, unsigned status, const char *content_type,
    const char *text, size_t n);

/* Answer @status without a body; an earlier body is freed. */
void reply_empty(struct http_response *response, unsigned status);

/* Add a header field whose @name and @text are static.  Where HTTP_HEADERS_MAX are there it is left
 * out.  (problem_add_header() adds one that is copied.) */
void reply_header(struct http_response *response, const char *name, const char *text);

#endif
