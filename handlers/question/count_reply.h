/* count_reply.h - what is answered where a figure over a window, or its series, cannot be had.
 *
 * Layer: handlers.  Thread-safe: no state.
 */
#ifndef HANDLERS_QUESTION_COUNT_REPLY_H
#define HANDLERS_QUESTION_COUNT_REPLY_H

#include "handlers/http/http.h"
#include "handlers/question/window_params.h"

#define COUNT_STEP_DETAIL 256 /* bytes of the longest detail, with its NUL */

/* Write into @to, of @n bytes, why @job, a STORAGE_COUNT, has no series (STORAGE_TOO_FINE or
 * _TOO_MANY), and with which step, or for which window, there is one. */
void count_step_detail(const struct storage_job *job, char *to, size_t n);

/* Answer for the exchange's job, a STORAGE_COUNT that failed.  @asked is the question.  A 422 says
 * which window, or which step, could be answered. */
void count_failed(struct http_exchange *exchange, const struct window_params *asked);

#endif
