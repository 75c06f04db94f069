#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "service/http/strict.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

#define FIELDS 16

/* A head cut as libmicrohttpd 0.9.75 cuts it: in place, a line ends at LF or CRLF, a string ends at
 * NUL, and a folded line is appended to the name of the field before it, in another block. */
struct cut {
    char *bytes;
    char folded[64];
    struct http_field fields[FIELDS];
    struct http_head head;
};

/* Take the line at *@at and end it with NUL.  Returns NULL at the end of the bytes. */
static char *take_line(struct cut *c, size_t n, size_t *at)
{
    char *line = c->bytes + *at;
    char *end = memchr(line, '\n', n - *at);
    if (end == NULL) {
        return NULL;
    }
    *at = (size_t)(end - c->bytes) + 1;
    *end = '\0';
    if (end > line && end[-1] == '\r') {
        end[-1] = '\0';
    }
    return line;
}

static void cut_request_line(struct cut *c, char *line, size_t n)
{
    char *target = memchr(line, ' ', n); /* NULs are passed over here, and found by slice_of() */
    char *version = memrchr(line, ' ', n);
    cr_assert(target != NULL && version != target, "the test's request line");
    *target++ = '\0';
    *version++ = '\0';
    target += strspn(target, " ");
    c->head.method = slice_of(line);
    c->head.target = slice_of(target);
    c->head.version = slice_of(version);
}

static void fold(struct cut *c, const char *line)
{
    struct http_field *last = &c->fields[c->head.n_fields - 1];
    memcpy(c->folded, last->name.p, last->name.n);
    strncpy(c->folded + last->name.n, line + strspn(line, " \t"), 30);
    last->name = slice_of(c->folded);
}

static void cut_field(struct cut *c, char *line)
{
    char *colon = strchr(line, ':');
    cr_assert(colon != NULL && c->head.n_fields < FIELDS, "the test's field");
    *colon++ = '\0';
    colon += strspn(colon, " \t");
    c->fields[c->head.n_fields++] = (struct http_field){slice_of(line), slice_of(colon)};
}

static struct cut *cut(struct slice raw)
{
    struct cut *c = calloc(1, sizeof(*c));
    size_t at = 0;
    c->bytes = malloc(raw.n + 1);
    memcpy(c->bytes, raw.p, raw.n);
    c->bytes[raw.n] = '\0';
    c->head.fields = c->fields;
    char *first = take_line(c, raw.n, &at);
    cut_request_line(c, first, at);
    for (char *line; (line = take_line(c, raw.n, &at)) != NULL && *line != '\0';) {
        if ((*line == ' ' || *line == '\t') && c->head.n_fields > 0) {
            fold(c, line);
        } else {
            cut_field(c, line);
        }
    }
    c->head.size = at;
    return c;
}

static void cut_free(struct cut *c)
{
    free(c->bytes);
    free(c);
}

/* What is wrong with @raw by both checks; NULL: nothing.  (What @ret points to is gone then.) */
static const char *fault_of(struct slice raw, struct http_message *ret)
{
    struct cut *c = cut(raw);
    const char *fault = http_strict_layout(&c->head);
    if (fault == NULL) {
        fault = http_strict_check(&c->head, ret);
    }
    cut_free(c);
    return fault;
}

#define GET  "GET /a?b HTTP/1.1\r\n"
#define POST "POST /a HTTP/1.1\r\n"
#define HOST "Host: h\r\n"
#define END  "\r\n"
#define RAW(s)                                                                                     \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

/* Success scenarios */

Test(http_strict, sound_heads)
{
    static const struct slice rows[] = {
        RAW(GET HOST END),
        RAW("GET /a HTTP/1.0\r\n" END),
        RAW("GET /a HTTP/1.0\r\n" HOST END),
        RAW("GET /a HTTP/1.9\r\n" HOST END),
        RAW("GET http://h:1/a?b HTTP/1.1\r\n" HOST END),
        RAW("OPTIONS * HTTP/1.1\r\n" HOST END),
        RAW("b!#$%&'*+-.^_`|~09AZaz /a HTTP/1.1\r\n" HOST END),
        RAW("GET /\xc3\xa4?\xff HTTP/1.1\r\n" HOST END),
        RAW(GET "Host:h\r\n" END),
        RAW(GET "hOST:\t h\r\n" END),
        RAW(GET "Host:\r\n" END),
        RAW(GET HOST "A: a\tb \r\nB: \xe9\r\nC:\r\n" END),
        RAW(POST HOST "Content-Length: 0\r\n" END),
        RAW(POST HOST "Transfer-Encoding: Chunked\r\n" END),
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct http_message message;
        const char *fault = fault_of(rows[i], &message);
        cr_expect_null(fault, "row %zu: %s", i, fault);
    }
}

static void expect_text(struct slice actual, const char *expected)
{
    cr_expect(slice_equal(actual, slice_of(expected)), "[%.*s], not [%s]", (int)actual.n,
        actual.n > 0 ? actual.p : "", expected);
}

Test(http_strict, what_a_head_says)
{
    struct cut *c = cut((struct slice)RAW(
        POST HOST "CONTENT-LENGTH: 1234567890123456789\r\nContent-Type: text/plain; a=b\r\n"
                  "Content-Encoding: gzip\r\nX-Request-ID: abc\r\nexpect: 100-Continue\r\n" END));
    struct http_message message;
    cr_assert_null(http_strict_check(&c->head, &message));
    cr_expect_eq(message.content_length, 1234567890123456789u);
    cr_expect(message.expects_continue);
    cr_expect_not(message.chunked);
    expect_text(message.fields[FIELD_CONTENT_TYPE], "text/plain; a=b");
    expect_text(message.content_encoding, "gzip");
    expect_text(message.request_id, "abc");
    cut_free(c);
}

/* RFC 9110 section 5.5; the library takes away those in front only. */
Test(http_strict, blanks_behind_a_value_are_no_part_of_it)
{
    struct http_message message;
    struct cut *c = cut(
        (struct slice)RAW(POST HOST "Content-Type: text/plain \t\r\nContent-Encoding: gzip \r\n"
                                    "X-Request-ID: abc  \r\nExpect: 100-continue\t\r\n"
                                    "Authorization: Bearer t \r\nX-Forwarded-For: 192.0.2.1 \r\n"
                                    "DNT: \t \r\n" END));
    cr_assert_null(http_strict_check(&c->head, &message));
    expect_text(message.fields[FIELD_CONTENT_TYPE], "text/plain");
    expect_text(message.content_encoding, "gzip");
    expect_text(message.request_id, "abc");
    cr_expect(message.expects_continue);
    expect_text(message.fields[FIELD_AUTHORIZATION], "Bearer t");
    expect_text(message.forwarded[0], "192.0.2.1");
    expect_text(message.fields[FIELD_DNT], "");
    cut_free(c);
}

/* To the library this is a body without end: to take it for chunks would be to read another
 * request than it does. */
Test(http_strict, blanks_behind_chunked_are_refused)
{
    struct http_message message;
    cr_expect_null(
        fault_of((struct slice)RAW(POST HOST "Transfer-Encoding:\t chunked\r\n" END), &message));
    cr_expect_not_null(
        fault_of((struct slice)RAW(POST HOST "Transfer-Encoding: chunked \r\n" END), &message));
    cr_expect_not_null(
        fault_of((struct slice)RAW(POST HOST "Transfer-Encoding: chunked\t\r\n" END), &message));
}

Test(http_strict, the_last_forwarded_fields_are_kept_in_order)
{
    struct http_message message;
    struct cut *c =
        cut((struct slice)RAW(GET HOST "X-Forwarded-For: 1\r\nx-forwarded-for: 2, 3\r\n" END));
    cr_assert_null(http_strict_check(&c->head, &message));
    cr_assert_eq(message.n_forwarded, 2);
    expect_text(message.forwarded[0], "1");
    expect_text(message.forwarded[1], "2, 3");
    cut_free(c);
#define FORWARDED(text) "X-Forwarded-For: " text "\r\n"
    c = cut((struct slice)RAW(GET HOST FORWARDED("1") FORWARDED("2") FORWARDED("3") FORWARDED("4")
            FORWARDED("5") FORWARDED("6") FORWARDED("7") FORWARDED("8") FORWARDED("9") END));
    cr_assert_null(http_strict_check(&c->head, &message));
    cr_assert_eq(message.n_forwarded, HTTP_FORWARDED_MAX);
    expect_text(message.forwarded[0], "2");
    expect_text(message.forwarded[HTTP_FORWARDED_MAX - 1], "9");
    cut_free(c);
}

Test(http_strict, two_content_encodings_are_one_that_is_unknown)
{
    struct http_message message;
    cr_assert_null(fault_of(
        (struct slice)RAW(POST HOST "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n" END),
        &message));
    expect_text(message.content_encoding, ",");
}

Test(http_strict, targets_are_split_at_the_first_question_mark)
{
    static const struct {
        const char *target, *path, *query;
    } rows[] = {
        {"/a", "/a", ""},
        {"/a?", "/a", ""},
        {"/a?b?c", "/a", "b?c"},
        {"/%00?%00", "/%00", "%00"},
        {"?b", "", "b"},
        {"*", "*", ""},
        {"http://h/a?b", "/a", "b"},
        {"HTTPS://h:1/a", "/a", ""},
        {"http://h", "/", ""},
        {"http://h?b", "/", "b"},
        {"http://", "/", ""},
        {"/http://h/a", "/http://h/a", ""},
        {"ftp://h/a", "ftp://h/a", ""},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct slice path, query;
        http_target_split(slice_of(rows[i].target), &path, &query);
        expect_text(path, rows[i].path);
        expect_text(query, rows[i].query);
    }
}

Test(http_strict, request_ids)
{
    char longest[129];
    memset(longest, 'x', sizeof(longest));
    cr_expect(http_request_id_valid(SLICE("!~")));
    cr_expect(http_request_id_valid((struct slice){longest, 128}));
    cr_expect_not(http_request_id_valid((struct slice){longest, 129}));
    cr_expect_not(http_request_id_valid(SLICE("")));
    cr_expect_not(http_request_id_valid(SLICE("a b")));
    cr_expect_not(http_request_id_valid(SLICE("a\x7f")));
    cr_expect_not(http_request_id_valid(SLICE("\xc3\xa4")));
    cr_expect_not(http_request_id_valid(SLICE("a\n")));
}

/* Failure scenarios */

Test(http_strict, heads_that_are_not_sound)
{
    static const struct {
        struct slice raw;
        const char *word; /* in the fault */
    } rows[] = {
        {RAW("G(T /a HTTP/1.1\r\n" HOST END), "method"},
        {RAW("G\x80T /a HTTP/1.1\r\n" HOST END), "method"},
        {RAW("GET /a b HTTP/1.1\r\n" HOST END), "target"},
        {RAW("GET /a\tb HTTP/1.1\r\n" HOST END), "target"},
        {RAW("GET /a\rb HTTP/1.1\r\n" HOST END), "target"},
        {RAW("GET /a\x7f HTTP/1.1\r\n" HOST END), "target"},
        {RAW("GET /a HTTP/2.0\r\n" HOST END), "version"},
        {RAW("GET /a http/1.1\r\n" HOST END), "version"},
        {RAW(GET END), "Host is missing"},
        {RAW(GET HOST HOST END), "Host stands twice"},
        {RAW("GET /a HTTP/1.0\r\n" HOST "host: i\r\n" END), "Host stands twice"},
        {RAW(GET HOST "A : a\r\n" END), "name"},
        {RAW(GET HOST "A\t: a\r\n" END), "name"},
        {RAW(GET " " HOST END), "name"},
        {RAW(GET HOST ": a\r\n" END), "name"},
        {RAW(GET HOST "A(: a\r\n" END), "name"},
        {RAW(GET HOST "\x80: a\r\n" END), "name"},
        {RAW(GET HOST "A: a\rb\r\n" END), "value"},
        {RAW(GET HOST "A: a\r\r\n" END), "value"},
        {RAW(GET HOST "A: \x01\r\n" END), "value"},
        {RAW(GET HOST "A: \x7f\r\n" END), "value"},
        {RAW(POST HOST "Content-Length: 3\r\nContent-Length: 3\r\n" END),
            "Content-Length stands twice"},
        {RAW(POST HOST "Content-Length: 3, 3\r\n" END), "not a number"},
        {RAW(POST HOST "Content-Length: +3\r\n" END), "not a number"},
        {RAW(POST HOST "Content-Length:\r\n" END), "not a number"},
        {RAW(POST HOST "Content-Length: 3 \r\n" END), "not a number"},
        {RAW(POST HOST "Content-Length: 12345678901234567890\r\n" END), "not a number"},
        {RAW(POST HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n" END), "beside"},
        {RAW(POST HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END),
            "Transfer-Encoding stands twice"},
        {RAW(POST HOST "Transfer-Encoding: chunked, chunked\r\n" END), "not chunked"},
        {RAW(POST HOST "Transfer-Encoding: chunked \r\n" END), "not chunked"},
        {RAW(POST HOST "Transfer-Encoding: gzip\r\n" END), "not chunked"},
        {RAW(POST HOST "Transfer-Encoding:\r\n" END), "not chunked"},
        {RAW("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" END), "HTTP/1.0"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct http_message message = {.content_length = 77};
        const char *fault = fault_of(rows[i].raw, &message);
        cr_assert_not_null(fault, "row %zu passes", i);
        cr_expect_not_null(strstr(fault, rows[i].word), "row %zu: %s", i, fault);
        cr_expect_eq(message.content_length, 77, "row %zu: written on failure", i);
    }
}

Test(http_strict, what_the_library_hides)
{
    static const struct slice rows[] = {
        RAW("GET /a HTTP/1.1\n" HOST END),
        RAW(GET "Host: h\n" END),
        RAW(GET HOST "\n"),
        RAW(GET HOST "A: a\r\n b\r\n" END),
        RAW(GET HOST "A: a\r\n\tb\r\nB: b\r\n" END),
        RAW(POST HOST "Content-Len: 3\r\n gth\r\n" END),
        RAW(GET HOST "A: a\0b\r\n" END),
        RAW(POST HOST "Content-Length: 3\0 5\r\n" END),
        RAW(GET HOST "\0A: a\r\n"),
        RAW("GET /a\0b HTTP/1.1\r\n" HOST END),
        RAW("GE\0T /a HTTP/1.1\r\n" HOST END),
        RAW("GET  /a HTTP/1.1\r\n" HOST END),
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct cut *c = cut(rows[i]);
        struct http_message message;
        cr_expect_null(http_strict_check(&c->head, &message), "row %zu: seen without layout", i);
        cr_expect_not_null(http_strict_layout(&c->head), "row %zu passes", i);
        cut_free(c);
    }
}

Test(http_strict, every_byte_of_a_token)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (unsigned c = 1; c < 256; c++) {
        char name[2] = {(char)c, '\0'};
        bool token = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     strchr(others, (int)c) != NULL;
        struct http_field fields[] = {{SLICE("Host"), SLICE("h")}, {{name, 1}, SLICE("")}};
        struct http_head head = {SLICE("GET"), SLICE("/"), SLICE("HTTP/1.1"), fields, 2, 0};
        struct http_message message;
        cr_expect_eq(http_strict_check(&head, &message) == NULL, token, "byte %u", c);
    }
}
