/* json_object.h - a body that is one object with few members, each of them known.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * Where a function returns NULL or false the response says what is wrong and what is allowed:
 *
 *     400    no JSON
 *     415    another Content-Type
 *     422    another fault of the body; `errors` points to the member
 *     413    more values than any body here needs
 *     503    memory is out
 */
#ifndef HANDLERS_REPLY_JSON_OBJECT_H
#define HANDLERS_REPLY_JSON_OBJECT_H

#include <stddef.h>

#include "handlers/reply/json_body.h"

/* Read the body, an object.  The caller owns the result. */
json_t *json_object_body(struct http_exchange *exchange) MUST_CHECK;

/* Has @root no other members than the @n of @names?  Another member is probably a typo, and would
 * be ignored without a word. */
bool json_object_only(
    struct http_exchange *exchange, json_t *root, const char *const *names, size_t n) MUST_CHECK;

/* Answer 422: @detail says what is wrong, and @pointer, a JSON pointer (RFC 6901) such as
 * "/items/3", says where.  Returns false. */
bool json_object_refuse(struct http_exchange *exchange, const char *pointer, const char *detail);

#endif
