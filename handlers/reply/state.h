/* state.h - how an endpoint begins: its state, which lives until its last step, and its clock.
 *
 * Layer: handlers.  Thread-safe: no state of its own.
 */
#ifndef HANDLERS_REPLY_STATE_H
#define HANDLERS_REPLY_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* Give @exchange a state of @size bytes, all zero, which the exchange owns.  When the request is
 * over, @release frees exchange->state and what the state holds.  NULL: memory is out, and the
 * response is a 503. */
void *state_begin(struct http_exchange *exchange, size_t size,
    void (*release)(struct http_exchange *exchange)) MUST_CHECK;

/* Is it known when the request arrived?  Only Redis's clock tells that.  False: Redis was never
 * seen, and the response is a 503. */
bool state_has_time(struct http_exchange *exchange) MUST_CHECK;

#endif
