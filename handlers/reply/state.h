/* state.h - what an endpoint remembers of a request from its first step to its last.
 *
 * Layer: handlers.  Thread-safe: no state of its own.
 */
#ifndef HANDLERS_REPLY_STATE_H
#define HANDLERS_REPLY_STATE_H

#include <stddef.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* Give @exchange a state of @size bytes, all zero.  The exchange owns it: when the request is over,
 * @release frees exchange->state and what it holds.  NULL: memory is out, and the response is a
 * 503. */
void *state_begin(struct http_exchange *exchange, size_t size,
    void (*release)(struct http_exchange *exchange)) MUST_CHECK;

#endif
