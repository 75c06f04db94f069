/* question.h - how a handler that asks storage begins.
 *
 * Layer: handlers.  Thread-safe: no state.
 */
#ifndef HANDLERS_QUESTION_QUESTION_H
#define HANDLERS_QUESTION_QUESTION_H

#include <stddef.h>

#include "handlers/http/http.h"

/* Zeroed memory of @size bytes as the exchange's state, which @release gives back, and the
 * request's deadline for its job.  NULL: the response says why: no memory, or Redis was never seen,
 * whose clock tells what `now` is. */
void *question_begin(
    struct http_exchange *exchange, size_t size, void (*release)(struct http_exchange *exchange));

#endif
