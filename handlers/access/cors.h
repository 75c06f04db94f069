/* cors.h - which pages of other origins may read answers (the Fetch standard, section 3.2).
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * With --cors-origins every answer has `Vary: Origin`, for it may differ by who asks.  An origin
 * that is listed is named in Access-Control-Allow-Origin; `*` stands for all.  Others get no such
 * header, and their browser keeps the answer from them.
 *
 * navigator.sendBeacon() always asks with credentials, so the two routes that browsers send page
 * views to (ROUTE_BEACON) allow those: tallyd has no cookies and their answers hold no secret.  No
 * other route does, so a page that may send page views cannot read figures with what a visitor is
 * logged in with at a proxy.
 */
#ifndef HANDLERS_ACCESS_CORS_H
#define HANDLERS_ACCESS_CORS_H

#include "handlers/http/app.h"
#include "handlers/http/http.h"

/* "*", or scheme://host or scheme://host:port as browsers write it: in lower case, without a path.
 */
bool cors_origin_valid(struct slice text);

/* Whether there are other origins; @app may be NULL. */
bool cors_on(const struct app *app);

/* Add to the answer of a request that came with @origin (empty: with none) on a route with @flags.
 */
void cors_dress(
    const struct app *app, struct slice origin, unsigned flags, struct http_response *response);

/* The answer to a preflight, a request OPTIONS with @origin, for a path that has @methods, as the
 * header has them.  cors_dress() adds to it what it adds to all. */
void cors_preflight(const char *methods, struct http_response *response);

#endif
