/* dashboard.c - GET /, GET /ops and GET /web/{file}: the pages that people look at.
 *
 * The files of handlers/web/ and Chart.js (as Debian has it) are built in; the build joins the
 * modules of a page into one script.  The files are the same for everybody and hold no figures, so
 * nobody needs a token for them.  The page asks the plain API for the figures, and asks its user
 * for a token if the API wants one.
 *
 * A browser asks each time whether a file has changed (see file.h), so that page and scripts are of
 * one version.  The Content-Security-Policy allows nothing but these files and the API. */
#include "handlers/routes.h"

#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/web/file.h"

WEB_EMBED(index_html, "web/", "index.html");
WEB_EMBED(ops_html, "web/", "ops.html");
WEB_EMBED(style_css, "web/", "style.css");
WEB_EMBED(app_js, "web/", "app.js");
WEB_EMBED(ops_js, "web/", "ops.js");
WEB_EMBED(icon_svg, "web/", "icon.svg");
WEB_EMBED(chart_license_txt, "web/", "chart-license.txt");
WEB_EMBED(chart_min_js, "", "chart.min.js");

#define SCRIPT(name, symbol) WEB_FILE(name, "text/javascript; charset=utf-8", symbol)

static const struct web_file page = WEB_FILE(NULL, "text/html; charset=utf-8", index_html);
static const struct web_file ops_page = WEB_FILE(NULL, "text/html; charset=utf-8", ops_html);

static const struct web_file files[] = {
    WEB_FILE("style.css", "text/css; charset=utf-8", style_css),
    SCRIPT("app.js", app_js),
    SCRIPT("ops.js", ops_js),
    SCRIPT("chart.min.js", chart_min_js),
    WEB_FILE("icon.svg", "image/svg+xml", icon_svg),
    WEB_FILE("chart-license.txt", "text/plain; charset=utf-8", chart_license_txt),
};

static enum handler_result reply_file(struct http_exchange *exchange, const struct web_file *file)
{
    struct http_response *response = &exchange->response;
    web_file_reply(exchange, file);
    reply_header(response, "Cache-Control", "no-cache");
    reply_header(response, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
        "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    reply_header(response, "Referrer-Policy", "no-referrer");
    return HANDLER_REPLY;
}

enum handler_result dashboard_start(struct http_exchange *exchange)
{
    return reply_file(exchange, &page);
}

enum handler_result ops_page_start(struct http_exchange *exchange)
{
    return reply_file(exchange, &ops_page);
}

enum handler_result dashboard_file_start(struct http_exchange *exchange)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (slice_equal(exchange->request.segment, slice_of(files[i].name))) {
            return reply_file(exchange, &files[i]);
        }
    }
    problem_reply(&exchange->response, PROBLEM_NOT_FOUND, "no such file");
    return HANDLER_REPLY;
}
