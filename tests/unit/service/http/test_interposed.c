#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/toy_server.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define HOST        "Host: h\r\n"
#define CHUNKED     "Transfer-Encoding: chunked\r\n"
#define ID          "X-Request-Id: mine\r\n"

static const struct http_server_config defaults;

/* Send @request on a new connection.  The answer must be a problem with @status and @detail, behind
 * which the connection is closed. */
static void expect_refusal(
    const struct toy *toy, const char *request, int status, const char *detail, const char *id)
{
    struct answer answer;
    char text[256];
    int fd = toy_connect(toy);
    toy_send(fd, request);
    cr_assert(toy_answer(fd, &answer), "no answer to %.60s", request);
    cr_expect_eq(answer.status, status, "%d, not %d, to %.60s", answer.status, status, request);
    cr_expect(answer_header(&answer, "Content-Type", text, sizeof(text)));
    cr_expect_str_eq(text, "application/problem+json");
    cr_expect(answer_header(&answer, "Connection", text, sizeof(text)));
    cr_expect_str_eq(text, "close", "%.60s", request);
    cr_expect(answer_header(&answer, "X-Content-Type-Options", text, sizeof(text)));
    cr_expect(answer_header(&answer, "X-Request-Id", text, sizeof(text)) && text[0] != '\0');
    cr_expect(id == NULL || strcmp(text, id) == 0, "%s to %.60s", text, request);
    cr_expect_not_null(strstr(answer.body, detail), "%s to %.60s", answer.body, request);
    cr_expect(toy_ended(fd, 5000));
    (void)close(fd);
}

Test(http_interposed, what_the_library_cannot_parse_is_a_problem)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    static const char line[] = "the request line is not";
    static const char head[] = "a line of the head has no colon";
    static const char length[] = "Content-Length is not a number";
    static const char framing[] = "not framed in chunks";
    static const struct {
        const char *request;
        int status;
        const char *detail, *id;
        bool routed; /* the head was sound */
    } rows[] = {
        {"GET \r\n\r\n", 400, line, NULL, false},
        {"GET /now HTTP/x\r\n\r\n", 400, line, NULL, false},
        {"GET /now FTP/1.1\r\n" ID "\r\n", 400, line, NULL, false},
        {"GET /now HTTP/2.0\r\n" HOST "\r\n", 505, "the version", NULL, false},
        {"GET /now HTTP/0.9\r\n" HOST "\r\n", 505, "the version", NULL, false},
        {"GET /now HTTP/1.1\r\n" HOST "colon\r\n\r\n", 400, head, NULL, false},
        {"GET /now HTTP/1.1\r\n" HOST ID "a: b\r\ncolon\r\n\r\n", 400, head, "mine", false},
        {"POST /echo HTTP/1.1\r\n" HOST ID "Content-Length: x\r\n\r\n", 400, length, "mine", false},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", 413,
            "Content-Length does not fit", NULL, false},
        {"POST /echo HTTP/1.1\r\n" HOST CHUNKED ID "\r\nx\r\n", 400, framing, "mine", true},
        {"POST /echo HTTP/1.1\r\n" HOST CHUNKED "\r\n1\r\nabc", 400, framing, NULL, true},
        {"POST /echo HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\ntrailer\r\n\r\n", 400, framing, NULL,
            true},
        {"POST /echo HTTP/1.1\r\n" HOST CHUNKED "\r\nfffffffffffffffff\r\n", 413,
            "the size of a chunk", NULL, true},
    };
    unsigned n;
    size_t route;
    unsigned status;
    for (size_t i = 0; i < ROWS(rows); i++) {
        expect_refusal(toy, rows[i].request, rows[i].status, rows[i].detail, rows[i].id);
        toy_await_observed(toy, (unsigned)i + 1);
        toy_observed(toy, &n, &route, &status);
        cr_expect_eq(n, i + 1, "observed once: %.60s", rows[i].request);
        cr_expect_eq(route < toy_n_routes(), rows[i].routed, "%.60s", rows[i].request);
        cr_expect_eq(status, (unsigned)rows[i].status);
    }
    cr_expect_eq(toy_stats(toy).refused_large, 2);
    cr_expect_eq(toy_stats(toy).refused_head, (int64_t)ROWS(rows) - 2);
    toy_stop(toy);
}

Test(http_interposed, what_does_not_end_is_a_problem)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    static const struct {
        const char *before;
        int status;
        const char *detail;
    } rows[] = {
        {"GET /", 414, "the request line is too long"},
        {"GET /now HTTP/1.1\r\n" HOST "A: ", 431, "the head is too large"},
        {"POST /echo HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\nT: ", 431, "the trailers are too large"},
    };
    static char request[64 * 1024];
    for (size_t i = 0; i < ROWS(rows); i++) {
        int n = snprintf(request, sizeof(request), "%s%0*d", rows[i].before, 40000, 0);
        cr_assert(n > 0 && (size_t)n < sizeof(request));
        expect_refusal(toy, request, rows[i].status, rows[i].detail, NULL);
    }
    toy_stop(toy);
}

Test(http_interposed, each_request_of_a_connection_is_judged_by_itself)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(fd, "POST /echo HTTP/1.1\r\n" HOST ID "Content-Length: 1\r\n\r\n.GET /now\r\n\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 200);
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 400);
    cr_expect_not_null(strstr(answer.body, "the request line"), "%s", answer.body);
    cr_expect_null(strstr(answer.head, "mine"), "%s", answer.head);
    cr_expect(toy_ended(fd, 5000));
    (void)close(fd);
    toy_stop(toy);
}

Test(http_interposed, a_head_to_head_gets_no_body)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(fd, "HEAD /now HTTP/1.1\r\n" HOST "colon\r\n\r\n");
    cr_assert(toy_answer_to_head(fd, &answer));
    cr_expect_eq(answer.status, 400);
    cr_expect(toy_ended(fd, 5000), "a body");
    (void)close(fd);
    toy_stop(toy);
}

/* The client expects "100 Continue", and has nothing to send: the library would call for the end of
 * the body too early where another request follows at once. */
Test(http_interposed, an_expectation_without_a_body)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    static const char *targets[] = {"/now", "/wait"};
    for (size_t i = 0; i < ROWS(targets); i++) {
        char request[256];
        int fd = toy_connect(toy);
        (void)snprintf(request, sizeof(request),
            "GET %s HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\nGET /now HTTP/1.1\r\n" HOST
            "\r\n",
            targets[i]);
        toy_send(fd, request);
        for (int n = 0; n < 2; n++) {
            cr_assert(toy_answer(fd, &answer), "%s", targets[i]);
            cr_expect_eq(answer.status, 200, "%d from %s", answer.status, targets[i]);
        }
        (void)close(fd);
    }
    toy_stop(toy);
}

/* The library would copy the field, and keep a record of each cookie. */
Test(http_interposed, cookies_take_no_memory)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    static const char *cookies[] = {"a=b; ", "name_of_a_cookie=\"a value, with a comma\"; ", "a"};
    static char request[13 * 1024];
    for (size_t i = 0; i < ROWS(cookies); i++) {
        int fd = toy_connect(toy);
        size_t n =
            (size_t)snprintf(request, sizeof(request), "GET /now HTTP/1.1\r\n" HOST "Cookie: ");
        while (n + strlen(cookies[i]) < (size_t)12 * 1024 - 4) {
            n += (size_t)snprintf(request + n, sizeof(request) - n, "%s", cookies[i]);
        }
        (void)snprintf(request + n, sizeof(request) - n, "\r\n\r\n");
        toy_send(fd, request);
        cr_assert(toy_answer(fd, &answer));
        cr_expect_eq(answer.status, 200, "%d to %s", answer.status, cookies[i]);
        (void)close(fd);
    }
    toy_stop(toy);
}
