#include "service/formats/log_format.h"

#include "service/formats/alb.h"
#include "service/formats/apache.h"
#include "service/formats/json_log.h"

#define LOG_FORMAT_NAME(name, text) [LOG_FORMAT_##name] = (text),
static const char *const format_names[] = {LOG_FORMATS(LOG_FORMAT_NAME)};
#undef LOG_FORMAT_NAME

const char *log_format_name(enum log_format format)
{
    return format_names[format];
}

bool log_format_find(const char *name, enum log_format *ret)
{
    for (size_t i = 0; i < LOG_FORMAT_COUNT; i++) {
        if (strcmp(name, format_names[i]) == 0) {
            *ret = (enum log_format)i;
            return true;
        }
    }
    return false;
}

void log_parser_init(
    struct log_parser *parser, enum log_format format, const struct nginx_template *tmpl)
{
    parser->format = tmpl != NULL ? LOG_FORMAT_TEMPLATE : format;
    parser->tmpl = tmpl;
    parser->w3c.n = 0;
}

static bool is_blank(struct slice line)
{
    return slice_trim(line, " \t").n == 0;
}

static bool is_object(struct slice line)
{
    return slice_begins(slice_trim(line, " \t"), SLICE("{"));
}

/* A copy of @text for the readers of JSON, which change what they read. */
static char *copy(struct log_parser *parser, struct slice text)
{
    if (text.n > 0) {
        memcpy(parser->scratch, text.p, text.n);
    }
    return parser->scratch;
}

/* The members of the formats with a JSON object a line. */
static const struct log_table *const json_tables[LOG_FORMAT_TEMPLATE + 1] = {
    [LOG_FORMAT_NGINX_JSON] = &nginx_variables,
    [LOG_FORMAT_CADDY] = &json_log_caddy,
    [LOG_FORMAT_TRAEFIK] = &json_log_traefik,
    [LOG_FORMAT_CLOUDFLARE] = &json_log_cloudflare,
};

/* Parse a line of @format.  NULL, or what is wrong. */
static const char *parse_line(
    struct log_parser *parser, enum log_format format, struct slice text, struct log_line *ret)
{
    switch (format) {
    case LOG_FORMAT_COMMON:
        return apache_parse(text, APACHE_COMMON, ret);
    case LOG_FORMAT_VHOST:
        return apache_parse(text, APACHE_VHOST, ret);
    case LOG_FORMAT_NGINX_JSON:
    case LOG_FORMAT_CADDY:
    case LOG_FORMAT_TRAEFIK:
    case LOG_FORMAT_CLOUDFLARE:
        return json_log_parse(json_tables[format], copy(parser, text), text.n, ret);
    case LOG_FORMAT_ALB:
        return alb_parse(text, ret);
    case LOG_FORMAT_CLOUDFRONT:
        return w3c_parse(&parser->w3c, W3C_CLOUDFRONT, text, parser->scratch, ret);
    case LOG_FORMAT_IIS:
        return w3c_parse(&parser->w3c, W3C_IIS, text, parser->scratch, ret);
    case LOG_FORMAT_TEMPLATE:
        return nginx_template_parse(parser->tmpl, text, ret);
    case LOG_FORMAT_AUTO: /* the line has no format: say what it is not */
    case LOG_FORMAT_NDJSON:
    case LOG_FORMAT_COMBINED:
        break;
    }
    return apache_parse(text, APACHE_COMBINED, ret);
}

/* The format of a JSON object; LOG_FORMAT_AUTO if no format fits. */
static enum log_format detect_object(struct log_parser *parser, struct slice text)
{
    struct log_line ignored;
    if (json_log_is_event(copy(parser, text), text.n)) {
        return LOG_FORMAT_NDJSON;
    }
    for (enum log_format format = 0; format < LOG_FORMAT_COUNT; format++) {
        if (json_tables[format] != NULL && parse_line(parser, format, text, &ignored) == NULL) {
            return format;
        }
    }
    return LOG_FORMAT_AUTO;
}

/* The format of @line; LOG_FORMAT_AUTO if no format fits.  The order matters: a line with a virtual
 * host reads as a combined one, too. */
static enum log_format detect(struct log_parser *parser, struct slice line)
{
    static const enum log_format formats[] = {
        LOG_FORMAT_ALB, LOG_FORMAT_VHOST, LOG_FORMAT_COMBINED, LOG_FORMAT_COMMON};
    struct log_line ignored;
    if (is_object(line)) {
        return detect_object(parser, line);
    }
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if ((formats[i] != LOG_FORMAT_VHOST || apache_begins_with_vhost(line)) &&
            parse_line(parser, formats[i], line, &ignored) == NULL) {
            return formats[i];
        }
    }
    return LOG_FORMAT_AUTO;
}

/* Take a directive of the W3C's, where the format may have one.  False: the line is no
 * directive. */
static bool take_directive(struct log_parser *parser, struct slice text)
{
    enum log_format format = parser->format;
    enum w3c_server server;
    if ((format != LOG_FORMAT_AUTO && format != LOG_FORMAT_IIS &&
            format != LOG_FORMAT_CLOUDFRONT) ||
        !w3c_is_directive(text)) {
        return false;
    }
    if (w3c_take_directive(&parser->w3c, text, &server) && format == LOG_FORMAT_AUTO) {
        parser->format = server == W3C_IIS ? LOG_FORMAT_IIS : LOG_FORMAT_CLOUDFRONT;
    }
    return true;
}

/* May a line of @format be blank?  Programs that write JSON end their files with blank lines. */
static bool allows_blank(enum log_format format)
{
    return format == LOG_FORMAT_NDJSON || json_tables[format] != NULL;
}

enum log_result log_parser_read(
    struct log_parser *parser, struct slice text, struct log_line *ret, const char **ret_detail)
{
    if (take_directive(parser, text)) {
        return LOG_BLANK;
    }
    if (parser->format == LOG_FORMAT_AUTO) {
        parser->format = detect(parser, text);
    }
    if (allows_blank(parser->format) && is_blank(text)) {
        return LOG_BLANK;
    }
    if (parser->format == LOG_FORMAT_NDJSON) {
        return LOG_EVENT;
    }
    const char *fault = parser->format == LOG_FORMAT_AUTO && is_object(text)
                            ? "JSON of no format that is known"
                            : parse_line(parser, parser->format, text, ret);
    if (fault != NULL) {
        *ret_detail = fault;
        return LOG_MALFORMED;
    }
    return LOG_REQUEST;
}
