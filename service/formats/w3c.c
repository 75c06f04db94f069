#include "service/formats/w3c.h"

#include "handlers/text/url.h"
#include "handlers/text/utf8.h"

/* The order matters: a host's name in the request goes before the name of the distribution. */
static const struct log_member w3c_members[] = {
    {NULL, "date", LOG_FIELD_DATE},
    {NULL, "time", LOG_FIELD_CLOCK},
    {NULL, "c-ip", LOG_FIELD_CLIENT},
    {NULL, "cs-method", LOG_FIELD_METHOD},
    {NULL, "cs-uri-stem", LOG_FIELD_TARGET},
    {NULL, "cs-uri-query", LOG_FIELD_QUERY},
    {NULL, "sc-status", LOG_FIELD_STATUS},
    {NULL, "cs(User-Agent)", LOG_FIELD_UA},
    {NULL, "cs(Referer)", LOG_FIELD_REFERRER},
    {NULL, "x-host-header", LOG_FIELD_HOST},
    {NULL, "cs-host", LOG_FIELD_HOST},
    {NULL, "cs(Host)", LOG_FIELD_HOST},
};

static const struct log_table w3c_table = {
    w3c_members, sizeof(w3c_members) / sizeof(w3c_members[0])};

bool w3c_is_directive(struct slice line)
{
    static const char *const names[] = {
        "#Version:", "#Fields:", "#Software:", "#Start-Date:", "#End-Date:", "#Date:", "#Remark:"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (slice_begins(line, slice_of(names[i]))) {
            return true;
        }
    }
    return false;
}

/* Cut the next column off @rest.  Several blanks are one separator only where @separator is a
 * blank: a column between two tabs may be empty. */
static bool cut_column(struct slice *rest, char separator, struct slice *ret)
{
    while (separator == ' ' && slice_take(rest, ' ')) {
    }
    if (rest->n == 0) {
        return false;
    }
    *ret = slice_until(rest, separator);
    return true;
}

bool w3c_take_directive(struct w3c *w3c, struct slice line, enum w3c_server *ret_server)
{
    struct slice head = SLICE("#Fields:");
    if (!slice_begins(line, head)) {
        return false;
    }
    struct slice rest = {line.p + head.n, line.n - head.n}, name;
    *w3c = (struct w3c){0};
    *ret_server = W3C_IIS;
    while (w3c->n < W3C_COLUMNS_MAX && cut_column(&rest, ' ', &name)) {
        w3c->columns[w3c->n++] = log_table_find(&w3c_table, NULL, name);
        if (slice_equal(name, SLICE("x-edge-location"))) {
            *ret_server = W3C_CLOUDFRONT;
        }
    }
    return w3c->n > 0;
}

static size_t unescape_plus(const char *from, size_t n, char *to)
{
    for (size_t i = 0; i < n; i++) {
        bool is_address = n - i >= 5 && memcmp(from + i, "+http", 5) == 0;
        to[i] = from[i] == '+' && !is_address ? ' ' : from[i];
    }
    return n;
}

/* Undo, in @scratch, what @server did to a user agent.  A user agent that would be no text then
 * stays as it was written. */
static struct slice unescape(struct slice ua, enum w3c_server server, char *scratch)
{
    size_t n =
        server == W3C_IIS ? unescape_plus(ua.p, ua.n, scratch) : url_unescape(ua, false, scratch);
    struct slice text = {scratch, n};
    return utf8_valid(text) && memchr(scratch, '\0', n) == NULL ? text : ua;
}

const char *w3c_parse(const struct w3c *w3c, enum w3c_server server, struct slice line,
    char *scratch, struct log_line *ret)
{
    struct log_fields fields = {0};
    struct slice column;
    size_t n = 0;
    if (w3c->n == 0) {
        return "no #Fields: line before";
    }
    for (; cut_column(&line, server == W3C_IIS ? ' ' : '\t', &column); n++) {
        if (n < w3c->n && w3c->columns[n] != NULL) {
            log_fields_put(&fields, &w3c_table, w3c->columns[n], column);
        }
    }
    if (n != w3c->n) {
        return "not as many columns as #Fields: names";
    }
    struct slice *ua = &fields.of[LOG_FIELD_UA];
    if (ua->n > 0) {
        *ua = unescape(*ua, server, scratch);
    }
    return log_fields_read(&fields, ret);
}
