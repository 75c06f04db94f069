/* dashboard.c - GET / and GET /web/{file}: the page that people look at.
 *
 * The files of handlers/web/ and Chart.js (as Debian has it) are built in.  The files are the same
 * for everybody and hold no figures, so nobody needs a token for them.  The page asks the plain API
 * for the figures, and people for a token where the API wants one.
 *
 * Each file has a strong ETag, made of its bytes by the build.  A browser asks about each file
 * every time, so that page and scripts are of one version.  The Content-Security-Policy allows
 * nothing but these files and the API. */
#include "handlers/routes.h"

#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/web/embed.h"

/* .tag: the quoted ETag, no newline; made by the Makefile */
EMBED(index_html, "handlers/web/index.html");
EMBED(index_html_tag, "web/index.html.tag");
EMBED(style_css, "handlers/web/style.css");
EMBED(style_css_tag, "web/style.css.tag");
EMBED(app_js, "handlers/web/app.js");
EMBED(app_js_tag, "web/app.js.tag");
EMBED(api_js, "handlers/web/api.js");
EMBED(api_js_tag, "web/api.js.tag");
EMBED(format_js, "handlers/web/format.js");
EMBED(format_js_tag, "web/format.js.tag");
EMBED(icon_svg, "handlers/web/icon.svg");
EMBED(icon_svg_tag, "web/icon.svg.tag");
EMBED(chart_license_txt, "handlers/web/chart-license.txt");
EMBED(chart_license_txt_tag, "web/chart-license.txt.tag");
EMBED(chart_min_js, "chart.min.js");
EMBED(chart_min_js_tag, "web/chart.min.js.tag");

struct web_file {
    const char *name; /* below /web/; NULL: the page itself */
    const char *content_type;
    const char *text, *end, *tag;
};

#define FILE_ENTRY(name, type, symbol)                                                             \
    {                                                                                              \
        name, type, text_of_##symbol, end_of_##symbol, text_of_##symbol##_tag                      \
    }

static const struct web_file page = FILE_ENTRY(NULL, "text/html; charset=utf-8", index_html);

static const struct web_file files[] = {
    FILE_ENTRY("style.css", "text/css; charset=utf-8", style_css),
    FILE_ENTRY("app.js", "text/javascript; charset=utf-8", app_js),
    FILE_ENTRY("api.js", "text/javascript; charset=utf-8", api_js),
    FILE_ENTRY("format.js", "text/javascript; charset=utf-8", format_js),
    FILE_ENTRY("chart.min.js", "text/javascript; charset=utf-8", chart_min_js),
    FILE_ENTRY("icon.svg", "image/svg+xml", icon_svg),
    FILE_ENTRY("chart-license.txt", "text/plain; charset=utf-8", chart_license_txt),
};

static void add_header(struct http_response *response, const char *name, const char *text)
{
    response->headers[response->n_headers++] = (struct http_header){.name = name, .text = text};
}

/* Is @tag one of If-None-Match's?  Weak comparison: W/ makes no difference (RFC 9110 13.1.2). */
static bool is_known(struct slice known, const char *tag)
{
    return slice_equal(known, SLICE("*")) || memmem(known.p, known.n, tag, strlen(tag)) != NULL;
}

static enum handler_result reply_file(struct http_exchange *exchange, const struct web_file *file)
{
    struct http_response *response = &exchange->response;
    struct slice known = exchange->request.fields[FIELD_IF_NONE_MATCH];
    if (known.n > 0 && is_known(known, file->tag)) {
        reply_empty(response, 304);
    } else {
        reply_text(response, 200, file->content_type, file->text, (size_t)(file->end - file->text));
    }
    add_header(response, "ETag", file->tag);
    add_header(response, "Cache-Control", "no-cache");
    add_header(response, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
        "'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    add_header(response, "Referrer-Policy", "no-referrer");
    return HANDLER_REPLY;
}

enum handler_result dashboard_start(struct http_exchange *exchange)
{
    return reply_file(exchange, &page);
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
