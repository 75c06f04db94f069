/* request_check.h - lines of any format, and the requests that they must read as. */
#ifndef TESTS_UNIT_SERVICE_FORMATS_REQUEST_CHECK_H
#define TESTS_UNIT_SERVICE_FORMATS_REQUEST_CHECK_H

#include <criterion/criterion.h>

#include "service/formats/log_format.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

struct request {
    const char *client, *page, *ua, *host; /* ua NULL: the log has none */
    int64_t at_s;
    enum log_method method;
    unsigned status;
};

static inline void expect_text(
    const char *line, const char *what, struct slice got, const char *want)
{
    cr_expect(slice_equal(got, slice_of(want)), "%s: %s is <%.*s>, not <%s>", line, what,
        (int)got.n, got.n > 0 ? got.p : "", want);
}

/* @line reads as @want. */
static inline void expect_request(
    struct log_parser *parser, const char *line, const struct request *want)
{
    struct log_line got;
    const char *detail = "";
    enum log_result result = log_parser_read(parser, slice_of(line), &got, &detail);
    cr_assert_eq(result, LOG_REQUEST, "%s: %d, %s", line, (int)result, detail);
    expect_text(line, "client", got.client, want->client);
    expect_text(line, "page", got.page, want->page);
    expect_text(line, "host", got.host, want->host);
    expect_text(line, "user agent", got.ua, want->ua != NULL ? want->ua : "");
    cr_expect_eq(got.ua.p == NULL, want->ua == NULL, "%s", line);
    cr_expect_eq(got.at_s, want->at_s, "%s: %lld", line, (long long)got.at_s);
    cr_expect_eq(got.method, want->method, "%s", line);
    cr_expect_eq(got.status, want->status, "%s: %u", line, got.status);
}

/* @line is malformed, and the detail begins with @detail. */
static inline void expect_malformed(struct log_parser *parser, const char *line, const char *detail)
{
    struct log_line got;
    const char *told = "";
    enum log_result result = log_parser_read(parser, slice_of(line), &got, &told);
    cr_expect_eq(result, LOG_MALFORMED, "%s: %d", line, (int)result);
    cr_expect(strncmp(told, detail, strlen(detail)) == 0, "%s: <%s>", line, told);
}

#endif
