#include "service/formats/log_format.h"

#include "service/formats/apache.h"

#define LOG_FORMAT_NAME(name, text) [LOG_FORMAT_##name] = text,
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

void log_parser_init(struct log_parser *parser, enum log_format format)
{
    *parser = (struct log_parser){.format = format};
}

static struct slice without_blanks_before(struct slice line)
{
    while (line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t')) {
        line.p++;
        line.n--;
    }
    return line;
}

/* The format of @line; LOG_FORMAT_AUTO if the line has none of them. */
static enum log_format log_format_detect(struct slice line)
{
    struct log_line ignored;
    struct slice text = without_blanks_before(line);
    if (text.n > 0 && text.p[0] == '{') {
        return LOG_FORMAT_NDJSON;
    }
    if (apache_begins_with_vhost(line) && apache_parse(line, APACHE_VHOST, &ignored) == NULL) {
        return LOG_FORMAT_VHOST;
    }
    if (apache_parse(line, APACHE_COMBINED, &ignored) == NULL) {
        return LOG_FORMAT_COMBINED;
    }
    if (apache_parse(line, APACHE_COMMON, &ignored) == NULL) {
        return LOG_FORMAT_COMMON;
    }
    return LOG_FORMAT_AUTO;
}

enum log_result log_parser_read(
    struct log_parser *parser, struct slice text, struct log_line *ret, const char **ret_detail)
{
    if (parser->format == LOG_FORMAT_AUTO) {
        parser->format = log_format_detect(text);
    }
    const char *fault = NULL;
    switch (parser->format) {
    case LOG_FORMAT_NDJSON:
        return without_blanks_before(text).n == 0 ? LOG_BLANK : LOG_EVENT;
    case LOG_FORMAT_COMMON:
        fault = apache_parse(text, APACHE_COMMON, ret);
        break;
    case LOG_FORMAT_VHOST:
        fault = apache_parse(text, APACHE_VHOST, ret);
        break;
    case LOG_FORMAT_AUTO: /* the line has no format: say what it is not */
    case LOG_FORMAT_COMBINED:
    case LOG_FORMAT_COUNT:
        fault = apache_parse(text, APACHE_COMBINED, ret);
        break;
    }
    if (fault != NULL) {
        *ret_detail = fault;
        return LOG_MALFORMED;
    }
    return LOG_REQUEST;
}
