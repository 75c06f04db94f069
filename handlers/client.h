/* client.h - who sent a request.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_CLIENT_H
#define HANDLERS_CLIENT_H

#include "handlers/http.h"

/* The client's address: the peer's.  Its length is 0 where there is none (a unix socket). */
struct event_address client_address(const struct http_request *request);

#endif
