/* json_body.h - the body of a request as a tree of JSON, made by jansson.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * Bodies that come often have decoders of their own (ingest/event_json.h, limit/limit_json.h).
 */
#ifndef HANDLERS_REPLY_JSON_BODY_H
#define HANDLERS_REPLY_JSON_BODY_H

#include <jansson.h>
#include <stdbool.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* Read the exchange's body, a value of any kind, with jansson's @flags.  The caller owns the
 * result.  An integer beyond 64 bits, which jansson refuses, becomes a real.  NULL: the response
 * says why.
 *
 *     400    no JSON; the detail has line and column, both from 1
 *     413    more values than any body here needs
 *     503    memory is out */
json_t *json_body_read(struct http_exchange *exchange, size_t flags) MUST_CHECK;

/* Read @text with jansson's @flags; an integer beyond 64 bits becomes a real.  The caller owns the
 * result.  NULL: *ret_error says why. */
json_t *json_body_load(struct slice text, size_t flags, json_error_t *ret_error) MUST_CHECK;

/* Is the body JSON by its Content-Type, if it has one?  @or_text: text/plain is taken for JSON too,
 * because browsers send text/plain to another origin without a preflight.  False: the response is a
 * 415. */
bool json_body_type(struct http_exchange *exchange, bool or_text) MUST_CHECK;

/* The bytes of a string, which live as long as @value; empty if @value is no string. */
static inline struct slice json_text_of(const json_t *value)
{
    return (struct slice){json_string_value(value), json_string_length(value)};
}

#endif
