/* What one line of an access log is: tables of lines and of what they must read as. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/formats/apache.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

#define HEAD_ "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "
#define TAIL_ " 200 2326 \"-\" \"UA\""
#define GET_  HEAD_ "\"GET / HTTP/1.0\""

enum result { EVENT, OTHER_METHOD, MALFORMED };

/* Parses a copy that ends where the line ends, so that a sanitizer sees a byte read too many. */
static enum result parse(
    const char *text, size_t n, enum apache_format format, struct log_line *ret, char **copy)
{

    *copy = malloc(n > 0 ? n : 1);
    cr_assert_not_null(*copy);
    memcpy(*copy, text, n);
    if (apache_parse((struct slice){*copy, n}, format, ret) != NULL) {
        return MALFORMED;
    }
    return ret->method == LOG_OTHER ? OTHER_METHOD : EVENT;
}

static void expect(const char *text, enum apache_format format, enum result expected)
{
    struct log_line line;
    char *copy;

    cr_expect_eq(parse(text, strlen(text), format, &line, &copy), expected, "%s", text);
    free(copy);
}

static void expect_slice(const char *text, const char *what, struct slice got, const char *expected)
{
    cr_expect(slice_equal(got, slice_of(expected)), "%s: %s is <%.*s>, not <%s>", text, what,
        (int)got.n, got.n ? got.p : "", expected);
}

/* -- Whole lines
 * ------------------------------------------------------------------------------------ */

struct line_case {
    const char *text, *host, *page, *ua;
    bool is_ip;
    int64_t at_s;
    enum log_method method;
};

static const struct line_case combined_cases[] = {
    {"192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326 "
     "\"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"",
        "192.0.2.1", "/apache_pb.gif", "Mozilla/4.08 [en] (Win98; I ;Nav)", true, 971211336,
        LOG_GET},
    {"2001:db8::1 - - [29/Feb/2024:00:00:00 +0000] \"POST /form?x=1 HTTP/2.0\" 500 - \"-\" \"-\"",
        "2001:db8::1", "/form", "-", true, 1709164800, LOG_POST},
    {"::ffff:192.0.2.9 - - [29/Feb/2024:00:00:00 +0000] \"HEAD / HTTP/1.1\" 304 - \"-\" \"\"",
        "::ffff:192.0.2.9", "/", "", true, 1709164800, LOG_HEAD},
    {"host.example.org - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"UA\"",
        "host.example.org", "/", "UA", false, 0, LOG_GET},
    /* neither is an address */
    {"192.0.2.256 - - [01/Jan/1970:00:00:01 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"UA\"",
        "192.0.2.256", "/", "UA", false, 1, LOG_GET},
    {"- - - [01/Jan/1970:00:00:01 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"UA\"", "-", "/", "UA",
        false, 1, LOG_GET},
    /* quotes inside quotes stay as they are written */
    {"192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] \"GET /a\\\"b\\\"c?\\\" HTTP/1.1\" 200 1 "
     "\"r\\\"\" \"<?php system(\\\"id\\\"); ?>\\\\\"",
        "192.0.2.1", "/a\\\"b\\\"c", "<?php system(\\\"id\\\"); ?>\\\\", true, 1, LOG_GET},
    /* whatever follows the user agent is not looked at */
    {"192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"UA\" \"x\" 12",
        "192.0.2.1", "/", "UA", true, 1, LOG_GET},
    {"192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"UA\"x",
        "192.0.2.1", "/", "UA", true, 1, LOG_GET},
    /* a user's name may hold blanks, and what looks like a time but is none */
    {"192.0.2.1 id Jo [x] Doe [ [01/Jan/1970:00:00:01 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"UA\"",
        "192.0.2.1", "/", "UA", true, 1, LOG_GET},
    {"192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] \"GET /\xc3\xa9\xf0\x9f\x98\x80 HTTP/1.1\" 200 1 "
     "\"\xe9\" \"\xe2\x82\xac\tx\"",
        "192.0.2.1", "/\xc3\xa9\xf0\x9f\x98\x80", "\xe2\x82\xac\tx", true, 1, LOG_GET},
};

static void expect_line(const struct line_case *want, enum apache_format format)
{
    struct log_line got;
    char *copy;

    cr_assert_eq(
        parse(want->text, strlen(want->text), format, &got, &copy), EVENT, "%s", want->text);
    expect_slice(want->text, "client", got.client, want->host);
    expect_slice(want->text, "page", got.page, want->page);
    expect_slice(want->text, "user agent", got.ua, want->ua);
    cr_expect_eq(got.client_is_ip, want->is_ip, "%s", want->text);
    cr_expect_eq(got.at_s, want->at_s, "%s: %lld", want->text, (long long)got.at_s);
    cr_expect_eq(got.method, want->method, "%s", want->text);
    cr_expect_eq(got.ua.p == NULL, format == APACHE_COMMON, "%s", want->text);
    free(copy);
}

Test(apache, combined_lines)
{
    for (size_t i = 0; i < N(combined_cases); i++) {
        expect_line(&combined_cases[i], APACHE_COMBINED);
    }
}

Test(apache, common_lines)
{
    static const struct line_case cases[] = {
        {"192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326",
            "192.0.2.1", "/apache_pb.gif", "", true, 971211336, LOG_GET},
        {"2001:db8::2 - - [10/Oct/2000:13:55:36 -0700] \"GET /?q\" 200 -  ", "2001:db8::2", "/", "",
            true, 971211336, LOG_GET},
        {"www.example.com - - [10/Oct/2000:13:55:36 -0700] \"HEAD /x HTTP/1.0\" - -",
            "www.example.com", "/x", "", false, 971211336, LOG_HEAD},
    };

    for (size_t i = 0; i < N(cases); i++) {
        expect_line(&cases[i], APACHE_COMMON);
    }
}

Test(apache, common_is_not_combined)
{
    expect(GET_ " 200 2326", APACHE_COMMON, EVENT);
    expect(GET_ " 200 2326", APACHE_COMBINED, MALFORMED);
    expect(GET_ TAIL_, APACHE_COMMON, MALFORMED);
}

/* -- Requests
 * --------------------------------------------------------------------------------------- */

static void expect_request(const char *request, enum result expected, const char *page)
{
    char text[512];
    struct log_line line;
    char *copy;

    (void)snprintf(text, sizeof(text), "%s\"%s\"%s", HEAD_, request, TAIL_);
    cr_expect_eq(
        parse(text, strlen(text), APACHE_COMBINED, &line, &copy), expected, "<%s>", request);
    if (expected == EVENT) {
        expect_slice(request, "page", line.page, page);
    }
    free(copy);
}

Test(apache, targets_as_written)
{
    static const char *const cases[][2] = {
        {"GET / HTTP/1.1", "/"},
        {"GET /", "/"},
        {"GET /a?b HTTP/1.1", "/a"},
        {"GET /a?b?c HTTP/1.1", "/a"},
        {"GET /a%3Fb HTTP/1.1", "/a%3Fb"},
        {"GET /A/b HTTP/2", "/A/b"},
        {"GET //x// HTTP/3", "//x//"},
        {"GET /a#frag HTTP/1.1", "/a#frag"},
        {"GET /a#frag?q HTTP/1.1", "/a#frag"},
        {"GET http://example.com/p?q HTTP/1.1", "http://example.com/p"},
        {"GET http://example.com?q HTTP/1.1", "http://example.com"},
        {"GET * HTTP/1.1", "*"},
        {"GET #x HTTP/1.1", "#x"},
        {"POST /post HTTP/1.1", "/post"},
        {"HEAD /head HTTP/1.1", "/head"},
        /* blanks in the target */
        {"GET /a b HTTP/1.1", "/a b"},
        {"GET /a b", "/a b"},
        {"GET /a.php ?x HTTP/1.1", "/a.php "},
        {"GET /a?b= c d HTTP/1.1", "/a"},
        {"GET  /a HTTP/1.1", "/a"},
        /* a protocol is one only at the end, and only whole */
        {"GET /a HTTP/1.1 HTTP/1.0", "/a HTTP/1.1"},
        {"GET /a HTTP/x", "/a HTTP/x"},
        {"GET /a HTTP/", "/a HTTP/"},
        {"GET /aHTTP/1.1", "/aHTTP/1.1"},
    };

    for (size_t i = 0; i < N(cases); i++) {
        expect_request(cases[i][0], EVENT, cases[i][1]);
    }
}

Test(apache, other_methods)
{
    static const char *const cases[] = {"OPTIONS * HTTP/1.0", "PUT /x HTTP/1.1",
        "DELETE /x HTTP/1.1", "PATCH /x", "TRACE / HTTP/1.1", "CONNECT example.com:443 HTTP/1.1",
        "PROPFIND /x HTTP/1.1", "PRI * HTTP/2.0", "get / HTTP/1.1", /* methods are case-sensitive */
        "GETX / HTTP/1.1", "M-SEARCH * HTTP/1.1"};

    for (size_t i = 0; i < N(cases); i++) {
        expect_request(cases[i], OTHER_METHOD, NULL);
    }
}

Test(apache, requests_that_are_none)
{
    static const char *const cases[] = {"", "-", " ", "GET", "GET ", "GET  ", "GET HTTP/1.1",
        "GET  HTTP/1.1", "GET ?x", "GET ?x HTTP/1.1", "PUT ?x HTTP/1.1", "PUT", " GET / HTTP/1.1",
        "\\x16\\x03\\x01", "\\x16\\x03 x", "quit\\n", "G\xc3\x89T / HTTP/1.1", "G(T / HTTP/1.1",
        "GET /a\tb HTTP/1.1", "GET /\x7f HTTP/1.1"};

    for (size_t i = 0; i < N(cases); i++) {
        expect_request(cases[i], MALFORMED, NULL);
    }
}

/* -- Times
 * ------------------------------------------------------------------------------------------ */

static void expect_time(const char *time, int64_t at_s)
{
    char text[256];
    struct log_line line = {0};
    char *copy;
    enum result expected = at_s < 0 ? MALFORMED : EVENT;

    (void)snprintf(text, sizeof(text), "192.0.2.1 - - [%s] \"GET / HTTP/1.1\"%s", time, TAIL_);
    cr_expect_eq(parse(text, strlen(text), APACHE_COMBINED, &line, &copy), expected, "[%s]", time);
    if (at_s >= 0) {
        cr_expect_eq(line.at_s, at_s, "[%s]: %lld", time, (long long)line.at_s);
    }
    free(copy);
}

/* The seconds are from `date -u -d TIME +%s`. */
Test(apache, times)
{
    static const struct {
        const char *time;
        int64_t at_s;
    } cases[] = {
        {"01/Jan/1970:00:00:00 +0000", 0},
        {"01/Jan/1970:01:00:00 +0100", 0},
        {"31/Dec/1969:23:00:00 -0100", -1}, /* 1970 in UTC, but not where it was written */
        {"01/Jan/1970:00:59:59 +0100", -1}, /* the other way round */
        {"29/Feb/2000:12:00:00 +0000", 951825600},
        {"01/Mar/2000:00:00:00 +0000", 951868800},
        {"29/Feb/2024:23:59:59 +0000", 1709251199},
        {"31/Dec/2023:23:59:59 +0000", 1704067199},
        {"01/Jan/2024:00:00:00 +0000", 1704067200},
        {"31/Dec/2016:23:59:60 +0000", 1483228799}, /* a leap second counts as the one before */
        {"15/Jul/2025:12:30:45 +0545", 1752561945},
        {"15/Jul/2025:12:30:45 -0930", 1752616845},
        {"15/Jul/2025:12:30:45 -0000", 1752582645},
        {"15/Jul/2025:12:30:45 +1400", 1752532245},
        {"31/Jan/2025:00:00:00 +0000", 1738281600},
        {"30/Apr/2025:00:00:00 +0000", 1745971200},
        {"28/Feb/2100:00:00:00 +0000", 4107456000},
        {"01/Mar/2100:00:00:00 +0000", 4107542400},
        {"31/Dec/2999:23:59:59 +0000", 32503679999},
    };

    for (size_t i = 0; i < N(cases); i++) {
        expect_time(cases[i].time, cases[i].at_s);
    }
}

Test(apache, times_that_are_none)
{
    static const char *const cases[] = {"", "-", "10/Oct/2000:13:55:36", "10/Oct/2000:13:55:36 ",
        "10/Oct/2000:13:55:36 Z", "10/Oct/2000:13:55:36 0700", "10/Oct/2000:13:55:36 +07:00",
        "10/Oct/2000:13:55:36 +2400", "10/Oct/2000:13:55:36 +0060", "10/Oct/2000:13:55:36  0700",
        "10/Oct/2000:13:55:36 +070", "10/Oct/2000:13:55:36 +07000", "10/Oct/2000:13:55:36-0700",
        "1/Oct/2000:13:55:36 +0000", "00/Oct/2000:13:55:36 +0000", "32/Oct/2000:13:55:36 +0000",
        "31/Apr/2000:13:55:36 +0000", "30/Feb/2000:13:55:36 +0000", "29/Feb/2023:00:00:00 +0000",
        "29/Feb/1900:00:00:00 +0000", "29/Feb/2100:00:00:00 +0000", "10/oct/2000:13:55:36 +0000",
        "10/OCT/2000:13:55:36 +0000", "10/Okt/2000:13:55:36 +0000", "10/anF/2000:13:55:36 +0000",
        "10/10/2000:13:55:36 +0000", "10/Oct/200:13:55:36 +0000", "10/Oct/20000:13:55:36 +0000",
        "10/Oct/3000:13:55:36 +0000", "10/Oct/0000:13:55:36 +0000", "10/Oct/2000:24:00:00 +0000",
        "10/Oct/2000:13:60:36 +0000", "10/Oct/2000:13:55:61 +0000", "10/Oct/2000:-1:55:36 +0000",
        "10/Oct/2000 13:55:36 +0000", "10-Oct-2000:13:55:36 +0000", "10/Oct/2000:13.55.36 +0000",
        " 10/Oct/2000:13:55:36 +0000", "10/Oct/2000:13:55:36 +0000 ", "2000-10-10T13:55:36+00:00",
        "971211336"};

    for (size_t i = 0; i < N(cases); i++) {
        expect_time(cases[i], -1);
    }
}

/* Every day of 400 years (a whole cycle of the calendar) follows the one before. */
Test(apache, days_follow_each_other)
{
    static const char *const months[] = {
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t expected_s = 0;

    for (int year = 1970; year < 2370; year++) {
        for (int month = 0; month < 12; month++) {
            for (int day = 1; day <= 31; day++) {
                char text[128];
                struct log_line line;

                (void)snprintf(text, sizeof(text),
                    "192.0.2.1 - - [%02d/%s/%d:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1", day,
                    months[month], year);
                if (apache_parse(slice_of(text), APACHE_COMMON, &line) != NULL) {
                    cr_assert_gt(day, 28, "%s", text);
                    continue;
                }
                cr_assert_eq(line.at_s, expected_s, "%s", text);
                expected_s += 86400;
            }
        }
    }
    cr_assert_eq(expected_s, (int64_t)146097 * 86400);
}

/* -- Lines that are none
 * ---------------------------------------------------------------------------- */

Test(apache, missing_fields)
{
    static const char *const cases[] = {
        "",
        " ",
        "-",
        "192.0.2.1",
        "garbage without any field",
        " - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 - -[10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 -  [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 - frank[10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 - - 10/Oct/2000:13:55:36 -0700 \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700 \"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700]\"GET / HTTP/1.0\"" TAIL_,
        "192.0.2.1 - - \"GET / HTTP/1.0\"" TAIL_,
        HEAD_ "GET / HTTP/1.0" TAIL_,
        HEAD_ "\"GET / HTTP/1.0",
        HEAD_ "'GET / HTTP/1.0'" TAIL_,
        HEAD_ TAIL_,
        GET_,
        GET_ " ",
        GET_ "200 2326 \"-\" \"UA\"",
        GET_ " 2326 \"-\" \"UA\"",
        GET_ " OK 2326 \"-\" \"UA\"",
        GET_ " 200 2.3k \"-\" \"UA\"",
        GET_ " 200 \"-\" \"UA\"",
        GET_ " 200 2326",
        GET_ " 200 2326 ",
        GET_ " 200 2326 \"-\"",
        GET_ " 200 2326 \"-\" ",
        GET_ " 200 2326 - \"UA\"",
        GET_ " 200 2326 \"-\" UA",
        GET_ " 200 2326 \"-\"\"UA\"",
        GET_ " 200 2326  \"-\" \"UA\"",
    };

    for (size_t i = 0; i < N(cases); i++) {
        expect(cases[i], APACHE_COMBINED, MALFORMED);
    }
}

/* Cut anywhere before its last quote, a line is malformed, and no byte behind the cut is read. */
Test(apache, truncated_anywhere)
{
    static const char text[] =
        "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a\\\"b HTTP/1.0\" 200 5 "
        "\"http://example.com/\\\"\" \"Mozilla/5.0 (\\\"x\\\"; +http://bot\\\\\"";

    for (size_t n = 0; n < sizeof(text); n++) {
        struct log_line line;
        char *copy;
        enum result result = parse(text, n, APACHE_COMBINED, &line, &copy);

        free(copy);
        cr_expect_eq(result, n == sizeof(text) - 1 ? EVENT : MALFORMED, "%zu", n);
    }
}

/* Of two records that ran into each other the whole one counts, under the first one's host. */
Test(apache, truncated_user_agent_and_the_next_line)
{
    struct log_line line;
    static const char text[] = GET_ " 200 5 \"-\" \"Mozilla/5.0 (" GET_ TAIL_;
    char *copy;

    cr_assert_eq(parse(text, sizeof(text) - 1, APACHE_COMBINED, &line, &copy), EVENT);
    expect_slice(text, "user agent", line.ua, "UA");
    free(copy);
}

Test(apache, not_utf8)
{
    static const char *const cases[] = {"\xe9", "\x80", "\xc0\xaf", "\xc1\xbf", "\xc3", "\xc3(",
        "\xe0\x80\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xf0\x9f\x98"};

    for (size_t i = 0; i < N(cases); i++) {
        char text[256];

        (void)snprintf(text, sizeof(text), HEAD_ "\"GET /%s HTTP/1.1\"" TAIL_, cases[i]);
        expect(text, APACHE_COMBINED, MALFORMED);
        (void)snprintf(text, sizeof(text), GET_ " 200 5 \"-\" \"x%s\"", cases[i]);
        expect(text, APACHE_COMBINED, MALFORMED);
        /* The referrer is not sent. */
        (void)snprintf(text, sizeof(text), GET_ " 200 5 \"x%s\" \"UA\"", cases[i]);
        expect(text, APACHE_COMBINED, EVENT);
    }
}

Test(apache, nul_bytes)
{
    static const char in_host[] =
        "192.0.2.1\0 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_;
    static const char in_method[] = HEAD_ "\"GET\0 / HTTP/1.0\"" TAIL_;
    static const char in_page[] = HEAD_ "\"GET /\0 HTTP/1.0\"" TAIL_;
    static const char in_ua[] = GET_ " 200 5 \"-\" \"a\0b\"";
    struct log_line line;
    char *copy;

    cr_expect_eq(parse(in_host, sizeof(in_host) - 1, APACHE_COMBINED, &line, &copy), EVENT);
    cr_expect_not(line.client_is_ip);
    free(copy);
    cr_expect_eq(parse(in_method, sizeof(in_method) - 1, APACHE_COMBINED, &line, &copy), MALFORMED);
    free(copy);
    cr_expect_eq(parse(in_page, sizeof(in_page) - 1, APACHE_COMBINED, &line, &copy), MALFORMED);
    free(copy);
    cr_expect_eq(parse(in_ua, sizeof(in_ua) - 1, APACHE_COMBINED, &line, &copy), MALFORMED);
    free(copy);
}

/* -- Status and virtual host
 * ------------------------------------------------------------------------ */

Test(apache, status)
{
    static const struct {
        const char *text;
        unsigned status;
    } cases[] = {{"200", 200}, {"404", 404}, {"-", 0}, {"000", 0}, {"20", 0}, {"2000", 0}};

    for (size_t i = 0; i < N(cases); i++) {
        char text[256];
        struct log_line line;

        (void)snprintf(text, sizeof(text), GET_ " %s 5 \"-\" \"UA\"", cases[i].text);
        cr_assert_null(apache_parse(slice_of(text), APACHE_COMBINED, &line));
        cr_expect_eq(line.status, cases[i].status, "%s: %u", cases[i].text, line.status);
    }
}

Test(apache, virtual_host)
{
    static const struct {
        const char *before, *host, *client;
        bool is_seen; /* by apache_begins_with_vhost() */
    } cases[] = {
        {"www.example.org:80 192.0.2.1", "www.example.org:80", "192.0.2.1", true},
        {"www.example.org 192.0.2.1", "www.example.org", "192.0.2.1", true},
        {"www.example.org:443 2001:db8::1", "www.example.org:443", "2001:db8::1", true},
        {"www.example.org:443 client.example", "www.example.org:443", "client.example", true},
        {"www.example.org client.example", "www.example.org", "client.example", false},
        {"192.0.2.7 192.0.2.1", "192.0.2.7", "192.0.2.1", false},
        {"2001:db8::80 192.0.2.1", "2001:db8::80", "192.0.2.1", false},
    };
    static const char rest[] = " - Jo Doe [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\"" TAIL_;

    for (size_t i = 0; i < N(cases); i++) {
        char text[256];
        struct log_line line;

        (void)snprintf(text, sizeof(text), "%s%s", cases[i].before, rest);
        cr_assert_null(apache_parse(slice_of(text), APACHE_VHOST, &line), "%s", text);
        expect_slice(text, "host", line.host, cases[i].host);
        expect_slice(text, "client", line.client, cases[i].client);
        expect_slice(text, "page", line.page, "/a");
        cr_expect_eq(apache_begins_with_vhost(slice_of(text)), cases[i].is_seen, "%s", text);
    }
    cr_expect_not(apache_begins_with_vhost(slice_of(GET_ TAIL_)));
    cr_expect_not(apache_begins_with_vhost(slice_of("")));
    expect("www.example.org:80 192.0.2.1 [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"" TAIL_,
        APACHE_VHOST, MALFORMED);
    expect("www.example.org:80", APACHE_VHOST, MALFORMED);
}
