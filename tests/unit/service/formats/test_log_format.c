/* The format of a file that does not say which it has, and what formats have in common. */
#include "tests/unit/service/formats/request_check.h"

static struct log_parser parser;

static enum log_result read_line(const char *text)
{
    struct log_line line;
    const char *detail;
    return log_parser_read(&parser, slice_of(text), &line, &detail);
}

Test(log_format, auto_recognises_each)
{
    static const struct {
        const char *line;
        enum log_format format;
        enum log_result result;
    } rows[] = {
        {"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5 \"-\" \"UA\"",
            LOG_FORMAT_COMBINED, LOG_REQUEST},
        {"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5", LOG_FORMAT_COMMON,
            LOG_REQUEST},
        {"a.example:80 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5 \"-\" "
         "\"UA\"",
            LOG_FORMAT_VHOST, LOG_REQUEST},
        {" {\"page\":\"/\"}", LOG_FORMAT_NDJSON, LOG_EVENT},
        {"{\"user\":1,\"event\":\"signup\"}", LOG_FORMAT_NDJSON, LOG_EVENT},
        {"{\"actions\":[],\"user\":1", LOG_FORMAT_NDJSON, LOG_EVENT},
        {"{\"msec\":1,\"remote_addr\":\"192.0.2.1\",\"request\":\"GET / HTTP/1.0\"}",
            LOG_FORMAT_NGINX_JSON, LOG_REQUEST},
        {"{\"ts\":1,\"request\":{\"remote_ip\":\"192.0.2.1\",\"method\":\"GET\",\"uri\":\"/\"}}",
            LOG_FORMAT_CADDY, LOG_REQUEST},
        {"{\"StartUTC\":\"2021-06-06T08:03:59Z\",\"ClientHost\":\"192.0.2.1\",\"RequestPath\":\"/"
         "\"}",
            LOG_FORMAT_TRAEFIK, LOG_REQUEST},
        {"{\"EdgeStartTimestamp\":1,\"ClientIP\":\"192.0.2.1\",\"ClientRequestURI\":\"/\"}",
            LOG_FORMAT_CLOUDFLARE, LOG_REQUEST},
        {"http 2018-07-02T22:23:00Z a 192.0.2.1:2 - 0 0 0 200 - 0 5 \"GET http://h/ HTTP/1.1\" "
         "\"u\"",
            LOG_FORMAT_ALB, LOG_REQUEST},
        {"#Fields: date time c-ip cs-uri-stem", LOG_FORMAT_IIS, LOG_BLANK},
        {"#Fields: date time x-edge-location c-ip", LOG_FORMAT_CLOUDFRONT, LOG_BLANK},
        {"#Version: 1.0", LOG_FORMAT_AUTO, LOG_BLANK},
        {"# a comment", LOG_FORMAT_AUTO, LOG_MALFORMED},
        {"nonsense", LOG_FORMAT_AUTO, LOG_MALFORMED},
        {"", LOG_FORMAT_AUTO, LOG_MALFORMED},
        {"{\"level\":\"info\",\"ts\":1,\"msg\":\"serving\"}", LOG_FORMAT_AUTO, LOG_MALFORMED},
        {"{", LOG_FORMAT_AUTO, LOG_MALFORMED},
    };
    for (size_t i = 0; i < N(rows); i++) {
        log_parser_init(&parser, LOG_FORMAT_AUTO, NULL);
        cr_expect_eq(read_line("nonsense"), LOG_MALFORMED); /* decides nothing */
        enum log_result result = read_line(rows[i].line);
        cr_expect_eq(result, rows[i].result, "%s: %d", rows[i].line, (int)result);
        cr_expect_eq(parser.format, rows[i].format, "%s: %d", rows[i].line, (int)parser.format);
    }
}

Test(log_format, the_first_line_decides)
{
    log_parser_init(&parser, LOG_FORMAT_AUTO, NULL);
    cr_expect_eq(read_line("{\"page\":\"/\"}"), LOG_EVENT);
    cr_expect_eq(read_line("nonsense"), LOG_EVENT); /* the server's to refuse */
    cr_expect_eq(read_line(" \t"), LOG_BLANK);
    log_parser_init(&parser, LOG_FORMAT_COMBINED, NULL);
    cr_expect_eq(read_line("{\"page\":\"/\"}"), LOG_MALFORMED);
    cr_expect_eq(read_line("#Version: 1.0"), LOG_MALFORMED);
}

Test(log_format, names)
{
    enum log_format format = LOG_FORMAT_AUTO;
    for (size_t i = 0; i < LOG_FORMAT_COUNT; i++) {
        cr_assert(log_format_find(log_format_name((enum log_format)i), &format));
        cr_expect_eq(format, i);
    }
    cr_expect_not(log_format_find("", &format));
    cr_expect_not(log_format_find("combine", &format));
}

Test(log_format, the_longest_line)
{
    static char text[LOG_LINE_MAX + 1];
    memset(text, 'x', LOG_LINE_MAX);
    for (enum log_format format = 0; format < LOG_FORMAT_COUNT; format++) {
        log_parser_init(&parser, format, NULL);
        text[0] = 'x';
        enum log_result result = read_line(text);
        text[0] = '{';
        cr_expect_neq(result, LOG_REQUEST, "%d", (int)format);
        cr_expect_neq(read_line(text), LOG_REQUEST, "%d", (int)format);
    }
}

Test(log_line, ports)
{
    static const char *const rows[][2] = {
        {"192.0.2.1:80", "192.0.2.1"},
        {"192.0.2.1", "192.0.2.1"},
        {"example.org:443", "example.org"},
        {"[2001:db8::1]:443", "2001:db8::1"},
        {"[2001:db8::1]", "2001:db8::1"},
        {"2001:db8::1", "2001:db8::1"},
        {"2001:db8::1:443", "2001:db8::1:443"},
        {"::1", "::1"},
        {"example.org:", "example.org:"},
        {":80", ""},
        {"80", "80"},
        {"", ""},
        {"[]", ""},
        {"[", "["},
    };
    for (size_t i = 0; i < N(rows); i++) {
        expect_text(rows[i][0], "host", log_without_port(slice_of(rows[i][0])), rows[i][1]);
    }
}
