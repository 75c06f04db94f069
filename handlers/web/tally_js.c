/* tally_js.c - GET /tally.js: the script by which a page sends its own page views.
 *
 *     <script defer src="https://tally.example.org/tally.js" data-site="shop"></script>
 *
 * The script sends Plausible's event to api/event in its own folder, so that a proxy may serve
 * tallyd below a path.  The body is text/plain, for which browsers send no preflight.  An event for
 * which the browser's queue of beacons has no room is sent by fetch().  data-site names the site;
 * without it the site is the name of the page's host.
 *
 * An event is sent when the script runs.  Another is sent whenever the path has changed, after
 * history.pushState(), after replaceState() and on going back.  Another is sent when the page comes
 * back from the browser's back/forward cache.  A prerendered page sends when it is shown.  The
 * first event alone has the referrer, because all others are steps within the site.
 *
 * Nothing is sent from localhost, 127.0.0.1, [::1] or a file, unless the script has data-local.
 * Nothing is sent where localStorage has `tally_ignore`, the mark of a visitor who does not want to
 * be counted, as the owner of the site.  The address `#tally-ignore` sets the mark for the page's
 * origin, and `#tally-count` removes it.
 *
 * With --respect-dnt nothing is sent where the browser says Do-Not-Track or Global Privacy Control.
 * One line of the script sees to that; the Makefile makes another script without that line.  Both
 * scripts have less than 1 KiB, as openapi.yaml promises.
 *
 * The query is ignored, so that ?v=2 can get around a cache. */
#include "handlers/routes.h"

#include "handlers/http/app.h"
#include "handlers/reply/reply.h"
#include "handlers/web/file.h"

WEB_EMBED(tally_js, "handlers/web/", "tally.js");
WEB_EMBED(tally_all_js, "web/", "tally_all.js");

#define TYPE "text/javascript; charset=utf-8"

static const struct web_file polite = WEB_FILE(NULL, TYPE, tally_js);
static const struct web_file for_all = WEB_FILE(NULL, TYPE, tally_all_js);

enum handler_result tally_js_start(struct http_exchange *exchange)
{
    web_file_reply(exchange, exchange->app->respect_dnt ? &polite : &for_all);
    reply_header(&exchange->response, "Cache-Control", "public, max-age=3600");
    reply_header(&exchange->response, "Cross-Origin-Resource-Policy", "cross-origin");
    return HANDLER_REPLY;
}
