/* count_reply.h - what is answered where a figure over a window, or its series, cannot be had.
 *
 * Layer: handlers.  Thread-safe: no state.
 */
#ifndef HANDLERS_QUESTION_COUNT_REPLY_H
#define HANDLERS_QUESTION_COUNT_REPLY_H

#include "handlers/http/http.h"
#include "handlers/question/window_params.h"

/* Answer for the exchange's job, a STORAGE_COUNT that failed.  A 422 says which window, and which
 * step, could be answered. */
void count_failed(struct http_exchange *exchange, const struct window_params *asked);

#endif
