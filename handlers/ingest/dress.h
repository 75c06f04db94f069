/* dress.h - header fields and bodies that every answer of a route has.
 *
 * Layer: handlers.  A handler makes an answer, or the service does when it refuses a request before
 * the handler runs.  Both kinds of answers pass through here once, when they are complete.
 *
 * Thread safety: an exchange belongs to one thread at a time.
 */
#ifndef HANDLERS_INGEST_DRESS_H
#define HANDLERS_INGEST_DRESS_H

#include <stdbool.h>

#include "handlers/http/http.h"

/* Add to the exchange's response what the route's @flags ask for:
 *
 *   ROUTE_GUARDED  what is left of the ingestion limit (ingest/ingest_guard.h), if @known
 *   ROUTE_GIF      the image in place of the body (ingest/pixel.h)
 *   ROUTE_BASIC    members that Segment's SDKs read of a refusal (ingest/segment_dress.h)
 *   any            what a page of another @origin may read (access/cors.h)
 *
 * @flags is 0 where no route was found.  @origin is the request's Origin, empty without one.
 * @known: the token is known, or no tokens are in use.  A client without a known token is not told
 * about the limit, because it has none. */
void answer_dress(struct http_exchange *exchange, unsigned flags, struct slice origin, bool known);

#endif
