/* question.h - how a handler begins whose job for storage is a question.
 *
 * Layer: handlers.  Thread-safe: no state.
 */
#ifndef HANDLERS_QUESTION_QUESTION_H
#define HANDLERS_QUESTION_QUESTION_H

#include <stddef.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* Give @exchange a state of @size zeroed bytes, which @release frees, and its job the deadline of
 * the request.  NULL: the response is a 503, because memory is out or because Redis was never seen.
 * (Redis's clock tells what `now` is.) */
void *question_begin(struct http_exchange *exchange, size_t size,
    void (*release)(struct http_exchange *exchange)) MUST_CHECK;

#endif
