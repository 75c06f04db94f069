/* segment_dress.h - refusals of Segment's endpoints, as its SDKs read them.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * All SDKs look at the status, and some look into the body.  The SDK for Python writes the members
 * `code` and `message` into its log.  It takes a body without `code` for a broken network, and
 * sends the request again ten times.  So every refusal of a route with ROUTE_BASIC has these
 * members, also where the service refuses the request before the handler sees it (see dress.h).
 *
 * Source: the official SDKs for Python (github.com/segmentio/analytics-python), for Ruby, which
 * logs the whole body, and for Node, which looks at the status only; read 2026-11-23.
 */
#ifndef HANDLERS_INGEST_SEGMENT_DRESS_H
#define HANDLERS_INGEST_SEGMENT_DRESS_H

#include "handlers/http/http.h"

/* Put {"success":false,"code":".."} in front of the members of a refusal.  The code is the phrase
 * of the status, as "not_found".  An answer that is no refusal, or has no JSON object, stays as it
 * is; so does one where memory is out. */
void segment_dress(struct http_response *response);

#endif
