/* cors.h - which pages of other origins may read answers (the Fetch standard, section 3.2).
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * With --cors-origins every answer has `Vary: Origin`, because it may differ by the origin of the
 * page that asks.  An origin that is listed is named in Access-Control-Allow-Origin; `*` in the
 * list stands for all origins.  Other origins get no such field, and their browsers keep the answer
 * from the page.
 *
 * navigator.sendBeacon() always asks with credentials.  So the two routes that browsers send page
 * views to (ROUTE_BEACON) allow credentials: tallyd has no cookies, and the answers of these routes
 * hold no secret.  No other route allows them.  Therefore a page that may send page views cannot
 * read figures with the credentials that a visitor has at a proxy in front.
 */
#ifndef HANDLERS_ACCESS_CORS_H
#define HANDLERS_ACCESS_CORS_H

#include "handlers/http/app.h"
#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* Is @text "*", or an origin as browsers write it?  An origin is scheme://host or
 * scheme://host:port, in lower case, without a path. */
bool cors_origin_valid(struct slice text) MUST_CHECK;

/* Are any other origins allowed?  @app may be NULL. */
bool cors_on(const struct app *app) MUST_CHECK;

/* Add the fields for other origins to @response.  The request came with @origin, which may be
 * empty, on a route with @flags. */
void cors_dress(
    const struct app *app, struct slice origin, unsigned flags, struct http_response *response);

/* Answer a preflight: a request OPTIONS by which a browser asks what it may do.  @methods are those
 * of the path, as the header field has them.  cors_dress() comes behind, as for all answers. */
void cors_preflight(const char *methods, struct http_response *response);

#endif
