/* client.h - who sent a request.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * X-Forwarded-For is a list that each proxy prolongs at its right end with the address it was asked
 * from; everything further left is what somebody claimed.  So the list is read from the right, and
 * only while whoever wrote an entry is trusted: the first address that is not trusted is the
 * client's.  Several fields of that name are one list.  (RFC 9110 section 5.3; there is no standard
 * for this header itself.)  An entry that is no address ends the list: the client is then the last
 * one that is known.  A port behind an entry is cut off ("192.0.2.7:4711", "[2001:db8::1]:4711").
 */
#ifndef HANDLERS_ACCESS_CLIENT_H
#define HANDLERS_ACCESS_CLIENT_H

#include "handlers/http/http.h"

/* The client's address: the peer's, or, if that is one of app.trusted, what it says.  Its length is
 * 0 where there is none (a unix socket). */
struct event_address client_address(const struct http_exchange *exchange);

#endif
