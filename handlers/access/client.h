/* client.h - the address of a client, also behind proxies, and what the client asked a proxy for.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * X-Forwarded-For is a list.  Each proxy adds, at the right end, the address that sent it the
 * request; a client can make up everything further left.  So the list is read from the right, as
 * long as a trusted proxy has written the entry.  The first address that is not trusted is the
 * client's.
 *
 * Several fields of that name are one list (RFC 9110 section 5.3; there is no standard for this
 * field).  An entry that is no address ends the list: the client is then the last address that is
 * known.  A port behind an entry is cut off ("192.0.2.7:4711", "[2001:db8::1]:4711").
 */
#ifndef HANDLERS_ACCESS_CLIENT_H
#define HANDLERS_ACCESS_CLIENT_H

#include "handlers/http/http.h"

/* The client's address: the peer's, or what the peer says if the peer is one of app->trusted.  The
 * address has length 0 where there is none (a unix socket). */
struct event_address client_address(const struct http_exchange *exchange);

/* Is the peer one of app->trusted? */
bool client_is_proxied(const struct http_exchange *exchange);

/* The target of the request that a trusted proxy mirrors here: X-Original-URI (nginx by
 * convention), else X-Forwarded-Uri (Traefik, Caddy), as it was written, with its query.  Empty:
 * the peer is not one of app->trusted, or the peer does not say, or the field is there twice, so
 * that one of the two may come from the client. */
struct slice client_mirrored_target(const struct http_exchange *exchange);

#endif
