/* segment_dress.h - refusals of Segment's endpoints, as its SDKs read them.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * An SDK knows the status, and some look into the body: the one for Python takes the members `code`
 * and `message` for its log, and takes a body without `code` for a broken network, which is tried
 * again ten times.  So every refusal of a route with ROUTE_BASIC has these members, also where
 * the service refuses the request before the handler sees it (see dress.h).
 *
 * Source: the official SDKs for Python (github.com/segmentio/analytics-python), for Ruby, which
 * logs the whole body, and for Node, which looks at the status only; read 2026-11-23.
 */
#ifndef HANDLERS_INGEST_SEGMENT_DRESS_H
#define HANDLERS_INGEST_SEGMENT_DRESS_H

#include "handlers/http/http.h"

/* Put {"success":false,"code":".."} in front of the members of a refusal.  The code is the status's
 * phrase, as "not_found".  Without memory the body stays as it is. */
void segment_dress(struct http_response *response);

#endif
