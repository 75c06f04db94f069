/* question.h - how a handler begins whose job for storage is a question.
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

/* state_begin(), after state_has_time(): a question must know what `now` is. */
void *question_begin(struct http_exchange *exchange, size_t size,
    void (*release)(struct http_exchange *exchange)) MUST_CHECK;

/* Read the parameter @name of a list of names with figures: pv or uv.  Without the parameter
 * *ret_uv stays.  False: the response says what is wrong. */
bool question_read_pv_or_uv(struct http_exchange *exchange, const struct params *params,
    const char *name, bool *ret_uv) MUST_CHECK;

/* Read `limit`, of such a list: QUESTION_LIMIT rows without the parameter.  False: as above. */
#define QUESTION_LIMIT 10
bool question_read_limit(
    struct http_exchange *exchange, const struct params *params, size_t *ret) MUST_CHECK;

#endif
