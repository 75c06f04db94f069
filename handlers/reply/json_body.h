/* json_body.h - a request's body as JSON, where jansson reads it.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 */
#ifndef HANDLERS_REPLY_JSON_BODY_H
#define HANDLERS_REPLY_JSON_BODY_H

#include <jansson.h>

#include "handlers/http/http.h"

/* The exchange's body, a value of any kind, read with jansson's @flags; the caller's to release.
 * An integer beyond 64 bits, which jansson refuses, is a real.  NULL: the response says why: 400
 * with line and column, both from 1, for what is no JSON; 413 for more values than any body here
 * needs; 503 where memory is out. */
json_t *json_body_read(struct http_exchange *exchange, size_t flags);

/* A string's bytes; none where it is no string. */
static inline struct slice json_text_of(const json_t *value)
{
    return (struct slice){json_string_value(value), json_string_length(value)};
}

#endif
