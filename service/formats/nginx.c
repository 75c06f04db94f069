#include "service/formats/nginx.h"

#include "handlers/text/ascii.h"

static const struct log_member variables[] = {
    {NULL, "remote_addr", LOG_FIELD_CLIENT},
    {NULL, "msec", LOG_FIELD_TIME},
    {NULL, "time_iso8601", LOG_FIELD_TIME},
    {NULL, "time_local", LOG_FIELD_TIME},
    {NULL, "request_method", LOG_FIELD_METHOD},
    {NULL, "request_uri", LOG_FIELD_TARGET},
    {NULL, "request", LOG_FIELD_REQUEST},
    {NULL, "uri", LOG_FIELD_PATH},
    {NULL, "document_uri", LOG_FIELD_PATH},
    {NULL, "args", LOG_FIELD_QUERY},
    {NULL, "query_string", LOG_FIELD_QUERY},
    {NULL, "status", LOG_FIELD_STATUS},
    {NULL, "http_user_agent", LOG_FIELD_UA},
    {NULL, "http_referer", LOG_FIELD_REFERRER},
    {NULL, "host", LOG_FIELD_HOST},
    {NULL, "http_host", LOG_FIELD_HOST},
    {NULL, "server_name", LOG_FIELD_HOST},
};

const struct log_table nginx_variables = {variables, sizeof(variables) / sizeof(variables[0])};

static bool is_name(char c)
{
    return ascii_is_alnum(c) || c == '_';
}

/* Take "$name" or "${name}" at *p, and move *p behind it.  False: this is no variable. */
static bool take_variable(const char **p, struct slice *ret_name)
{
    const char *at = *p + 1;
    bool braced = *at == '{';
    at += braced ? 1 : 0;
    const char *end = at;
    while (is_name(*end)) {
        end++;
    }
    if (end == at || (braced && *end != '}')) {
        return false;
    }
    *ret_name = (struct slice){at, (size_t)(end - at)};
    *p = end + (braced ? 1 : 0);
    return true;
}

/* What the log_format must be, if the template lacks something that a page view needs.  NULL: the
 * template lacks nothing. */
static const char *find_missing(const struct nginx_template *tmpl)
{
    bool has[LOG_FIELD_COUNT] = {false};
    for (size_t i = 0; i < tmpl->n; i++) {
        if (tmpl->parts[i].member != NULL) {
            has[tmpl->parts[i].member->field] = true;
        }
    }
    if (!has[LOG_FIELD_CLIENT]) {
        return "a log_format with $remote_addr";
    }
    if (!has[LOG_FIELD_TIME]) {
        return "a log_format with $time_local, $time_iso8601 or $msec";
    }
    if (!has[LOG_FIELD_REQUEST] && !has[LOG_FIELD_TARGET] && !has[LOG_FIELD_PATH]) {
        return "a log_format with $request, $request_uri or $uri";
    }
    return NULL;
}

const char *nginx_template_compile(const char *format, struct nginx_template *ret)
{
    struct nginx_template tmpl = {0};
    const char *p = format;
    do {
        if (tmpl.n == NGINX_PARTS_MAX) {
            return "a log_format with at most 63 variables";
        }
        struct nginx_part part = {.text.p = p};
        p = strchrnul(p, '$');
        part.text.n = (size_t)(p - part.text.p);
        if (*p == '$') {
            struct slice name;
            if (!take_variable(&p, &name)) {
                return "a log_format in which every $ begins a variable";
            }
            if (part.text.n == 0 && tmpl.n > 0) {
                return "a log_format with a text between two variables";
            }
            part.has_variable = true;
            part.member = log_table_find(&nginx_variables, NULL, name);
        }
        tmpl.parts[tmpl.n++] = part;
    } while (*p != '\0');
    const char *missing = find_missing(&tmpl);
    if (missing == NULL) {
        *ret = tmpl;
    }
    return missing;
}

/* Where the text of the variable before part @i ends; NULL if the line does not go on as part
 * @i. */
static const char *find_end(
    const struct nginx_template *tmpl, size_t i, const char *p, const char *end)
{
    if (i == tmpl->n) {
        return end;
    }
    const struct nginx_part *next = &tmpl->parts[i];
    if (next->has_variable) {
        return memmem(p, (size_t)(end - p), next->text.p, next->text.n);
    }
    /* The line must end with this text.  memmem() would find the text in a variable, too. */
    const char *last = end - next->text.n;
    return (size_t)(end - p) >= next->text.n && memcmp(last, next->text.p, next->text.n) == 0
               ? last
               : NULL;
}

const char *nginx_template_parse(
    const struct nginx_template *tmpl, struct slice line, struct log_line *ret)
{
    struct log_fields fields = {0};
    const char *p = line.p, *end = line.p + line.n;
    for (size_t i = 0; i < tmpl->n; i++) {
        const struct nginx_part *part = &tmpl->parts[i];
        if ((size_t)(end - p) < part->text.n || memcmp(p, part->text.p, part->text.n) != 0) {
            return "not as the log_format writes it";
        }
        p += part->text.n;
        if (!part->has_variable) {
            break;
        }
        const char *stop = find_end(tmpl, i + 1, p, end);
        if (stop == NULL) {
            return "not as the log_format writes it";
        }
        if (part->member != NULL) {
            struct slice text = {p, (size_t)(stop - p)};
            log_fields_put(&fields, &nginx_variables, part->member, text);
        }
        p = stop;
    }
    return p == end ? log_fields_read(&fields, ret) : "not as the log_format writes it";
}
