/* tally_js.c - GET /tally.js: the script that a page counts itself with.
 *
 *     <script defer src="https://tally.example.org/tally.js" data-site="shop"></script>
 *
 * The script sends Plausible's event to /api/event beside itself.  The body is text/plain, for
 * which no browser asks permission first.  data-site names the site; without it the site is the
 * name of the page's host.
 *
 * An event is sent when the script runs.  Another is sent whenever the path has changed, after
 * history.pushState(), after replaceState() and on going back.  Another is sent when the page comes
 * back from the browser's cache of pages.  A page that is rendered ahead sends when it is shown.
 *
 * With --respect-dnt nothing is sent where the browser says Do-Not-Track or Global Privacy Control.
 * The query is passed over: ?v=2 gets around a cache. */
#include "handlers/routes.h"

#include "handlers/http/app.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"

#define TALLY_JS_MAX 1023 /* bytes, of the contract */

#define BEGIN                                                                                      \
    "(function(){\"use strict\";var d=document,s=d.currentScript,l=location,n=navigator,p;\n"

#define DNT "if(n.doNotTrack==1||window.doNotTrack==1||n.globalPrivacyControl)return;\n"

/* The address of /api/event is taken from the script's own, so it also works below a path.  A
 * beacon that the browser's queue has no room for is sent by fetch. */
#define REST                                                                                       \
    "var u=new URL(\"api/event\",s.src).href,w=s.getAttribute(\"data-site\")||l.hostname;\n"       \
    "function send(){if(p===l.pathname)return;p=l.pathname;"                                       \
    "var b=JSON.stringify({n:\"pageview\",u:l.href,d:w,r:d.referrer||null});\n"                    \
    "if(!(n.sendBeacon&&n.sendBeacon(u,b)))"                                                       \
    "fetch(u,{method:\"POST\",body:b,keepalive:true,mode:\"no-cors\"}).catch(function(){})}\n"     \
    "[\"pushState\",\"replaceState\"].forEach(function(k){var f=history[k];"                       \
    "history[k]=function(){var r=f.apply(this,arguments);send();return r}});\n"                    \
    "addEventListener(\"popstate\",send);"                                                         \
    "addEventListener(\"pageshow\",function(e){if(e.persisted){p=0;send()}});\n"                   \
    "if(d.prerendering)d.addEventListener(\"prerenderingchange\",send);else send()})();\n"

static const char script[] = BEGIN REST;
static const char polite_script[] = BEGIN DNT REST;
_Static_assert(sizeof(polite_script) - 1 <= TALLY_JS_MAX, "the script is less than 1 KiB");

enum handler_result tally_js_start(struct http_exchange *exchange)
{
    bool polite = exchange->app->respect_dnt;
    reply_text(&exchange->response, 200, "text/javascript; charset=utf-8",
        polite ? polite_script : script, (polite ? sizeof(polite_script) : sizeof(script)) - 1);
    (void)problem_add_header(&exchange->response, "Cache-Control", "public, max-age=3600");
    (void)problem_add_header(&exchange->response, "Cross-Origin-Resource-Policy", "cross-origin");
    return HANDLER_REPLY;
}
