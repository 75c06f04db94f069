/* log_format.h - the formats that `tallyd import` reads, and which of them a line has.
 *
 * Layer: service/formats, pure: no I/O, no clock.  Not thread-safe: a parser belongs to one thread.
 */
#ifndef SERVICE_FORMATS_LOG_FORMAT_H
#define SERVICE_FORMATS_LOG_FORMAT_H

#include "service/formats/log_line.h"
#include "service/formats/nginx.h"
#include "service/formats/w3c.h"

/* Every value of --format. */
#define LOG_FORMATS(X)                                                                             \
    X(AUTO, "auto")     /* the format of the first line that has one */                            \
    X(NDJSON, "ndjson") /* events of POST /events, one a line */                                   \
    X(COMBINED, "combined")                                                                        \
    X(COMMON, "common")                                                                            \
    X(VHOST, "vhost")                                                                              \
    X(NGINX_JSON, "nginx-json")                                                                    \
    X(CADDY, "caddy")                                                                              \
    X(TRAEFIK, "traefik")                                                                          \
    X(ALB, "alb")                                                                                  \
    X(CLOUDFRONT, "cloudfront")                                                                    \
    X(IIS, "iis")                                                                                  \
    X(CLOUDFLARE, "cloudflare")

#define LOG_FORMAT_VALUE(name, text) LOG_FORMAT_##name,
enum log_format {
    LOG_FORMATS(LOG_FORMAT_VALUE) LOG_FORMAT_COUNT,
    LOG_FORMAT_TEMPLATE = LOG_FORMAT_COUNT, /* nginx's, with a log_format of the user's */
};
#undef LOG_FORMAT_VALUE

/* The name of a format, a static text.  LOG_FORMAT_TEMPLATE has none, and must not be given. */
const char *log_format_name(enum log_format format);

/* The format with the name @name.  False: there is none. */
bool log_format_find(const char *name, enum log_format *ret) MUST_CHECK;

/* The kinds of lines. */
enum log_result {
    LOG_REQUEST,   /* a request: *ret has what the log says of it */
    LOG_EVENT,     /* a line of NDJSON, to be sent as it stands, whatever it is */
    LOG_BLANK,     /* a blank line or a directive, where the format may have such lines */
    LOG_MALFORMED, /* not of the format: *ret_detail says why */
};

struct log_parser {
    enum log_format format; /* LOG_FORMAT_AUTO until a line has shown the format */

    /* Fields below are the parser's own. */
    const struct nginx_template *tmpl; /* borrowed; NULL: none */
    struct w3c w3c;                    /* the columns that the last "#Fields:" line named */
    char scratch[LOG_LINE_MAX];
};

/* Begin a file.  @tmpl, if not NULL, is the format, and lives as long as the parser. */
void log_parser_init(
    struct log_parser *parser, enum log_format format, const struct nginx_template *tmpl);

/* Read @text, a line without its end, of at most LOG_LINE_MAX bytes.  Lines of W3C logs are read by
 * the "#Fields:" line before them, so the parser must have read that line, too.  *ret is written
 * for LOG_REQUEST only, and its slices are valid until the next call, while @text lives.
 * *ret_detail, a static text, is written for LOG_MALFORMED only. */
enum log_result log_parser_read(struct log_parser *parser, struct slice text, struct log_line *ret,
    const char **ret_detail) MUST_CHECK;

#endif
