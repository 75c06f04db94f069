/* question.h - how a handler begins if its job for storage is a question.
 *
 * Layer: handlers.  Thread-safe: no state.
 */
#ifndef HANDLERS_QUESTION_QUESTION_H
#define HANDLERS_QUESTION_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/http/http.h"
#include "handlers/text/params.h"
#include "storage/base/compiler.h"

/* Give @exchange a state, as state_begin() does, if it is known what `now` is: see
 * state_has_time().  NULL: the response is a 503. */
void *question_begin(struct http_exchange *exchange, size_t size,
    void (*release)(struct http_exchange *exchange)) MUST_CHECK;

/* Read `limit`, how many rows a list has at most: QUESTION_LIMIT without the parameter.
 * False: the response says what is wrong. */
#define QUESTION_LIMIT 10
bool question_read_limit(
    struct http_exchange *exchange, const struct params *params, size_t *ret) MUST_CHECK;

#endif
