/* tally_js.h - GET /tally.js: the script that a page counts itself with.
 *
 * Layer: handlers.
 *
 *     <script defer src="https://tally.example.org/tally.js" data-site="shop"></script>
 *
 * It sends Plausible's event to /api/event beside itself, as text/plain, which no browser asks
 * permission for.  data-site is the site; without it the name of the page's host is.  It sends one
 * when it runs, after history.pushState() and replaceState() and on going back, if the path is
 * another than before, and when a page comes back from the cache of pages; a page that is rendered
 * ahead sends when it is shown.
 *
 * With --respect-dnt it sends nothing where the browser says Do-Not-Track or Global Privacy
 * Control. A query is passed by (so that ?v=2 gets around a cache).
 */
#ifndef HANDLERS_INGEST_TALLY_JS_H
#define HANDLERS_INGEST_TALLY_JS_H

#include "handlers/http/http.h"

#define TALLY_JS_MAX 1023 /* bytes, of the contract */

enum handler_result tally_js_start(struct http_exchange *exchange);

#endif
