#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/http/request.h"
#include "tests/lib/gzip.h"
#include "tests/lib/toy_server.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define HOST        "Host: h\r\n"
#define CHUNKED     "Transfer-Encoding: chunked\r\n"

static const struct http_server_config defaults;

/* Send @request on a new connection and expect @status.  Returns whether the server closed it. */
static bool ask(const struct toy *toy, const char *request, int status, struct answer *ret)
{
    int fd = toy_connect(toy);
    toy_send(fd, request);
    cr_assert(toy_answer(fd, ret), "no answer to %s", request);
    cr_expect_eq(ret->status, status, "%d, not %d, to %s", ret->status, status, request);
    bool ended =
        toy_ended(fd, 0) || (strstr(ret->head, "Connection: close") && toy_ended(fd, 5000));
    (void)close(fd);
    return ended;
}

static void expect_header(const struct answer *answer, const char *name, const char *value)
{
    char actual[256];
    cr_expect(answer_header(answer, name, actual, sizeof(actual)), "no %s", name);
    cr_expect_str_eq(actual, value, "%s: %s", name, actual);
}

/* A problem document, as all of the server's own refusals are. */
static void expect_problem(const struct answer *answer)
{
    char text[64];
    expect_header(answer, "Content-Type", "application/problem+json");
    expect_header(answer, "X-Content-Type-Options", "nosniff");
    cr_expect(answer_header(answer, "X-Request-Id", text, sizeof(text)));
    (void)snprintf(text, sizeof(text), "\"status\":%d", answer->status);
    cr_expect_not_null(strstr(answer->body, text), "%s", answer->body);
    cr_expect_not_null(strstr(answer->body, "\"message\":"), "%s", answer->body);
}

/* Success scenarios */

Test(http_server, keeps_a_connection)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    static const struct {
        const char *request, *body;
    } rows[] = {
        {"GET /now HTTP/1.1\r\n" HOST "\r\n", "now"},
        {"GET /wait HTTP/1.1\r\n" HOST "\r\n", "waited"},
        {"GET /again?xxxxxxxx HTTP/1.1\r\n" HOST "\r\n", "x"},
        {"GET /again/?x HTTP/1.1\r\n" HOST "\r\n", "x"},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "hello"},
        {"POST /echo HTTP/1.1\r\n" HOST "\r\n", ""},
        {"POST /wait HTTP/1.1\r\n" HOST CHUNKED "\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: t\r\n\r\n",
            "abcde"},
        {"DELETE /now HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nxyz", "now"},
        {"GET /query?a=%00&b+ HTTP/1.1\r\n" HOST "\r\n", "/query a=%00&b+"},
        {"GET http://h/query?x HTTP/1.1\r\n" HOST "\r\n", "/query x"},
        {"GET /query HTTP/1.1\r\n" HOST "\r\n", "/query "},
        {"\r\nGET /now HTTP/1.1\r\n" HOST "\r\n", "now"},
    };
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < ROWS(rows); i++) {
            toy_send(fd, rows[i].request);
            cr_assert(toy_answer(fd, &answer));
            cr_expect_eq(answer.status, 200);
            cr_expect_str_eq(answer.body, rows[i].body);
        }
    }
    cr_expect_eq(toy_stats(toy).connections, 1);
    (void)close(fd);
    toy_stop(toy);
}

Test(http_server, answers_have_the_handlers_headers_and_its_own)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    cr_expect_not(ask(toy, "GET /now HTTP/1.1\r\n" HOST "\r\n", 200, &answer));
    expect_header(&answer, "Content-Type", "text/plain");
    expect_header(&answer, "X-Toy", "yes");
    expect_header(&answer, "X-Content-Type-Options", "nosniff");
    toy_stop(toy);
}

Test(http_server, request_ids)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    char id[2][256];
    (void)ask(toy, "GET /now HTTP/1.1\r\n" HOST "X-Request-Id: abc!~\r\n\r\n", 200, &answer);
    expect_header(&answer, "X-Request-Id", "abc!~");
    (void)ask(toy, "GET /none HTTP/1.1\r\n" HOST "X-Request-Id: abc\r\n\r\n", 404, &answer);
    expect_header(&answer, "X-Request-Id", "abc");
    for (int i = 0; i < 2; i++) { /* one that may not be echoed, so another is made */
        (void)ask(toy, "GET /now HTTP/1.1\r\n" HOST "X-Request-Id: a b\r\n\r\n", 200, &answer);
        cr_expect(answer_header(&answer, "X-Request-Id", id[i], sizeof(id[i])));
        cr_expect(strlen(id[i]) > 9 && strchr(id[i], ' ') == NULL, "%s", id[i]);
    }
    cr_expect_str_neq(id[0], id[1]);
    toy_stop(toy);
}

Test(http_server, head_is_get_without_the_body)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    static const char *targets[] = {"/now", "/wait", "/big", "/again?xxx"};
    for (size_t i = 0; i < ROWS(targets); i++) {
        char request[64];
        (void)snprintf(request, sizeof(request), "HEAD %s HTTP/1.1\r\n" HOST "\r\n", targets[i]);
        toy_send(fd, request);
        cr_assert(toy_answer_to_head(fd, &answer));
        cr_expect_eq(answer.status, 200);
        cr_expect(answer.n > 0, "no Content-Length");
    }
    toy_send(fd, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_str_eq(answer.body, "now");
    (void)close(fd);
    toy_stop(toy);
}

Test(http_server, pipelined_requests_are_answered_in_order)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    char requests[20000];
    size_t n = 0;
    for (int i = 0; i < 100; i++) {
        n += (size_t)snprintf(requests + n, sizeof(requests) - n,
            "POST %s HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n%03d",
            i % 3 == 0 ? "/wait" : "/echo", i);
    }
    toy_send_n(fd, requests, n);
    for (int i = 0; i < 100; i++) {
        cr_assert(toy_answer(fd, &answer));
        cr_expect_eq(strtol(answer.body, NULL, 10), i);
    }
    (void)close(fd);
    toy_stop(toy);
}

Test(http_server, big_and_empty_answers)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(fd, "GET /big HTTP/1.1\r\n" HOST "\r\nGET /empty HTTP/1.1\r\n" HOST
                 "\r\nGET /now HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.n, 4u << 20);
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 204);
    cr_expect_null(strstr(answer.head, "Content-Length"));
    cr_assert(toy_answer(fd, &answer));
    cr_expect_str_eq(answer.body, "now");
    (void)close(fd);
    toy_stop(toy);
}

Test(http_server, http_1_0_and_connection_close)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    cr_expect(ask(toy, "GET /now HTTP/1.0\r\n\r\n", 200, &answer));
    cr_expect(ask(toy, "GET /now HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, &answer));
    toy_stop(toy);
}

Test(http_server, expect_100_continue)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(
        fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 100);
    toy_send(fd, "ab");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_str_eq(answer.body, "ab");
    (void)close(fd);
    (void)ask(toy,
        "POST /none HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", 404,
        &answer);
    toy_stop(toy);
}

/* A head with many arguments and fields, each printed from its number; the caller frees. */
static char *long_head(const char *arg, int n_args, const char *field, int n_fields)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    (void)fputs("GET /now?", out);
    for (int i = 0; i < n_args; i++) {
        (void)fprintf(out, arg, i);
    }
    (void)fputs(" HTTP/1.1\r\n" HOST, out);
    for (int i = 0; i < n_fields; i++) {
        (void)fprintf(out, field, i);
    }
    (void)fputs("\r\n", out);
    (void)fclose(out);
    return text;
}

Test(http_server, heads_of_12_kib)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    char *heads[] = {
        long_head("", 0, "X: %012000d\r\n", 1), long_head("", 0, "X-Field: %0112d\r\n", 99),
        long_head("page=/%074d&", 100, "X-Field: %089d\r\n", 40),
        long_head("a&", 4000, "", 0), /* more arguments than the library has room for */
    };
    for (size_t i = 0; i < ROWS(heads); i++) {
        struct answer answer;
        int fd = toy_connect(toy);
        for (int round = 0; round < 2; round++) { /* a kept connection has room again */
            toy_send(fd, heads[i]);
            cr_assert(toy_answer(fd, &answer), "head %zu", i);
            cr_expect_eq(answer.status, 200, "head %zu: %d", i, answer.status);
        }
        (void)close(fd);
        free(heads[i]);
    }
    toy_stop(toy);
}

Test(http_server, gzip)
{
    struct toy *toy = toy_start(
        (struct http_server_config){.max_body = 1000, .max_body_memory = 1000000}, TOY_THREAD);
    static const struct {
        size_t n, cut;
        int status;
    } rows[] = {{0, 0, 200}, {1000, 0, 200}, {1001, 0, 413}, {100000, 0, 413}, {1000, 1, 400}};
    char *plain = malloc(100001);
    memset(plain, 'p', 100001);
    for (size_t i = 0; i < ROWS(rows); i++) {
        size_t n;
        struct answer answer;
        char head[200];
        char *zipped = gzip_member(plain, rows[i].n, &n);
        int fd = toy_connect(toy);
        n -= rows[i].cut;
        (void)snprintf(head, sizeof(head),
            "POST /echo HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
            n);
        for (int round = 0; round < 2; round++) { /* the connection survives a refusal */
            toy_send(fd, head);
            toy_send_n(fd, zipped, n);
            cr_assert(toy_answer(fd, &answer));
            cr_expect_eq(answer.status, rows[i].status, "row %zu: %d", i, answer.status);
            cr_expect(answer.status != 200 ||
                      (answer.n == rows[i].n && memcmp(answer.body, plain, answer.n) == 0));
        }
        (void)close(fd);
        free(zipped);
    }
    free(plain);
    toy_await_connections(toy, 0);
    cr_expect_eq(toy_stats(toy).body_bytes, 0);
    toy_stop(toy);
}

/* Many requests at once, waiting and not, on @n connections. */
static void ask_on_many(const struct toy *toy, int *fds, size_t n)
{
    struct answer answer;
    for (size_t i = 0; i < n; i++) {
        fds[i] = toy_connect(toy);
    }
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < n; i++) {
            toy_send(fds[i], i % 2 == 0 ? "POST /wait HTTP/1.1\r\n" HOST
                                          "Content-Length: 1\r\n\r\na"
                                        : "GET /wait HTTP/1.1\r\n" HOST "\r\n");
        }
        for (size_t i = 0; i < n; i++) {
            cr_assert(toy_answer(fds[i], &answer));
            cr_expect_str_eq(answer.body, i % 2 == 0 ? "a" : "waited");
        }
    }
}

Test(http_server, many_connections_on_some_threads)
{
    static const struct {
        unsigned threads, n;
    } rows[] = {{2, 50}, {1, 150}, {2, 300}};
    for (size_t k = 0; k < ROWS(rows); k++) {
        int fds[300];
        unsigned n, status;
        size_t route;
        struct toy *toy = toy_start((struct http_server_config){.threads = rows[k].threads,
                                        .max_connections = rows[k].n,
                                        .max_body_memory = 1000000},
            TOY_THREAD);
        ask_on_many(toy, fds, rows[k].n);
        cr_expect_eq(toy_stats(toy).connections, rows[k].n);
        for (size_t i = 0; i < rows[k].n; i++) {
            (void)close(fds[i]);
        }
        toy_await_observed(toy, 20 * rows[k].n);
        toy_observed(toy, &n, &route, &status);
        cr_expect_eq(n, 20 * rows[k].n);
        cr_expect_eq(status, 200);
        toy_stop(toy);
    }
}

Test(http_server, each_connection_goes_to_the_thread_with_the_fewest)
{
    struct toy *toy = toy_start((struct http_server_config){.threads = 2}, TOY_THREAD);
    struct answer answer;
    int fds[8];
    long first = 0;
    unsigned n_first = 0;
    for (size_t i = 0; i < 8; i++) {
        fds[i] = toy_connect(toy);
        toy_send(fds[i], "GET /thread HTTP/1.1\r\n" HOST "\r\n");
        cr_assert(toy_answer(fds[i], &answer));
        long thread = strtol(answer.body, NULL, 10);
        first = i == 0 ? thread : first;
        n_first += thread == first;
    }
    cr_expect_eq(n_first, 4u);
    for (size_t i = 0; i < 8; i++) {
        (void)close(fds[i]);
    }
    toy_stop(toy);
}

Test(http_server, one_connection_more_than_allowed_waits)
{
    struct toy *toy =
        toy_start((struct http_server_config){.threads = 3, .max_connections = 2}, TOY_THREAD);
    struct answer answer;
    int fds[3];
    for (size_t i = 0; i < 3; i++) {
        fds[i] = toy_connect(toy);
        toy_send(fds[i], "GET /now HTTP/1.1\r\n" HOST "\r\n");
    }
    cr_assert(toy_answer(fds[0], &answer));
    cr_assert(toy_answer(fds[1], &answer));
    cr_expect_eq(toy_stats(toy).connections, 2);
    (void)close(fds[0]);
    cr_assert(toy_answer(fds[2], &answer));
    (void)close(fds[1]);
    (void)close(fds[2]);
    toy_stop(toy);
}

Test(http_server, as_many_threads_as_the_option_allows)
{
    struct toy *toy = toy_start((struct http_server_config){.threads = 256}, TOY_THREAD);
    struct answer answer;
    (void)ask(toy, "GET /wait HTTP/1.1\r\n" HOST "\r\n", 200, &answer);
    toy_stop(toy);
}

Test(http_server, jobs_that_are_done_within_submit)
{
    struct toy *toy = toy_start(defaults, TOY_INLINE);
    struct answer answer;
    int fd = toy_connect(toy);
    for (int i = 0; i < 100; i++) {
        toy_send(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
        cr_assert(toy_answer(fd, &answer));
        cr_expect_str_eq(answer.body, "waited");
    }
    (void)close(fd);
    toy_stop(toy);
}

/* Failure scenarios */

Test(http_server, not_found_and_method_not_allowed_keep_the_connection)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    static const struct {
        const char *request;
        int status;
        const char *allow;
    } rows[] = {
        {"GET /none HTTP/1.1\r\n" HOST "\r\n", 404, NULL},
        {"GET /now%00 HTTP/1.1\r\n" HOST "\r\n", 404, NULL},
        {"GET /now/ HTTP/1.1\r\n" HOST "\r\n", 404, NULL},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 404, NULL},
        {"POST /none HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 404, NULL},
        {"POST /now HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 405, "GET, HEAD, DELETE"},
        {"HEAD /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 405, "POST"},
        {"PATCH /wait HTTP/1.1\r\n" HOST "\r\n", 405, "GET, HEAD, POST"},
        {"TRACE /empty HTTP/1.1\r\n" HOST "\r\n", 405, "GET, HEAD"},
    };
    unsigned n, status;
    size_t route;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int fd = toy_connect(toy);
        bool to_head = strncmp(rows[i].request, "HEAD", 4) == 0;
        toy_send(fd, rows[i].request);
        cr_assert(to_head ? toy_answer_to_head(fd, &answer) : toy_answer(fd, &answer));
        cr_expect_eq(answer.status, rows[i].status, "row %zu: %d", i, answer.status);
        if (!to_head) {
            expect_problem(&answer);
        }
        if (rows[i].allow != NULL) {
            expect_header(&answer, "Allow", rows[i].allow);
        }
        if (!to_head) {
            toy_send(fd, "GET /now HTTP/1.1\r\n" HOST "\r\n");
            cr_expect(toy_answer(fd, &answer), "row %zu: closed", i);
        }
        (void)close(fd);
    }
    (void)ask(toy, "GET /none HTTP/1.1\r\n" HOST "\r\n", 404, &answer);
    toy_await_observed(toy, 2 * (unsigned)ROWS(rows));
    toy_observed(toy, &n, &route, &status);
    cr_expect_eq(route, toy_n_routes(), "unrouted requests are counted apart");
    cr_expect_eq(status, 404);
    toy_stop(toy);
}

Test(http_server, unsound_heads_are_refused_and_the_connection_closed)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    static const char *rows[] = {
        "GET /now HTTP/1.1\r\n\r\n",
        "GET /now HTTP/1.1\r\n" HOST HOST "\r\n",
        "GET /now HTTP/1.1\r\n" HOST "A : b\r\n\r\n",
        "GET /now HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n",
        "GET /now HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n",
        "GET /now HTTP/1.1\n" HOST "\r\n",
        "G@T /now HTTP/1.1\r\n" HOST "\r\n",
        "GET /n ow HTTP/1.1\r\n" HOST "\r\n",
        "GET  /now HTTP/1.1\r\n" HOST "\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
        "POST /echo HTTP/1.1\r\n" HOST CHUNKED "Content-Length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST CHUNKED CHUNKED "\r\n1\r\na\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST
        "Transfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "POST /echo HTTP/1.0\r\n" CHUNKED "\r\n1\r\na\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Content-Len: 1\r\n gth\r\n\r\na",
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_expect(ask(toy, rows[i], 400, &answer), "left open: %s", rows[i]);
        expect_problem(&answer);
    }
    int fd = toy_connect(toy); /* and one with NUL */
    static const char with_nul[] = "GET /now HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n";
    toy_send_n(fd, with_nul, sizeof(with_nul) - 1);
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 400);
    (void)close(fd);
    cr_expect_eq(toy_stats(toy).refused_head, (int64_t)ROWS(rows) + 1);
    toy_stop(toy);
}

Test(http_server, too_many_fields)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    char *head = long_head("", 0, "A:\r\n", 100); /* and Host */
    cr_expect(ask(toy, head, 431, &answer));
    expect_problem(&answer);
    free(head);
    toy_stop(toy);
}

Test(http_server, too_large_by_content_length_is_refused_at_once)
{
    struct toy *toy = toy_start((struct http_server_config){.max_body = 1000}, TOY_THREAD);
    struct answer answer;
    (void)ask(toy, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", 413, &answer);
    expect_problem(&answer);
    (void)ask(
        toy, "DELETE /now HTTP/1.1\r\n" HOST "Content-Length: 9999999999999\r\n\r\n", 413, &answer);
    cr_expect_eq(toy_stats(toy).refused_large, 2);
    toy_stop(toy);
}

/* A client that reads nothing before it has sent it all must not lose the answer to a reset. */
Test(http_server, a_refusal_reaches_a_client_that_is_still_sending)
{
    struct toy *toy = toy_start((struct http_server_config){.max_body = 1000}, TOY_THREAD);
    size_t n = 20u << 20;
    char *junk = calloc(1, n);
    for (int i = 0; i < 5; i++) {
        struct answer answer;
        int fd = toy_connect(toy);
        toy_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 20971520\r\n\r\n");
        toy_send_n(fd, junk, n);
        cr_assert(toy_answer(fd, &answer), "the answer is lost");
        cr_expect_eq(answer.status, 413);
        (void)close(fd);
    }
    free(junk);
    toy_stop(toy);
}

/* One chunk of @n bytes, with @extension behind its size.  Free the result. */
static char *chunk_of(size_t n, const char *extension, size_t *ret_n)
{
    char *chunk = malloc(n + strlen(extension) + 32);
    int head = sprintf(chunk, "%zx%s\r\n", n, extension);
    memset(chunk + head, 'x', n);
    memcpy(chunk + (size_t)head + n, "\r\n", 2);
    *ret_n = (size_t)head + n + 2;
    return chunk;
}

static void expect_cut(struct toy *toy, size_t n, const char *extension, int64_t refused)
{
    struct answer answer;
    size_t chunk_n;
    char *chunk = chunk_of(n, extension, &chunk_n);
    int fd = toy_connect(toy);
    toy_send(fd, "POST /echo HTTP/1.1\r\n" HOST CHUNKED "\r\n");
    bool open = true;
    for (int i = 0; i < 20000 && open; i++) {
        open = send(fd, chunk, chunk_n, MSG_NOSIGNAL) == (ssize_t)chunk_n;
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        open = open && poll(&readable, 1, 0) == 0;
    }
    cr_assert(toy_answer(fd, &answer), "no answer before the body's end");
    cr_expect_eq(answer.status, 413);
    expect_problem(&answer);
    cr_expect_eq(toy_stats(toy).body_bytes, 0);
    cr_expect_eq(toy_stats(toy).refused_large, refused);
    (void)close(fd);
    free(chunk);
}

Test(http_server, a_chunked_body_without_end_is_cut)
{
    struct toy *toy = toy_start((struct http_server_config){.max_body = 1000}, TOY_THREAD);
    expect_cut(toy, 0x400, "", 1);
    toy_stop(toy);
}

Test(http_server, framing_without_end_is_cut)
{
    struct toy *toy = toy_start((struct http_server_config){.max_body = 10000}, TOY_THREAD);
    char extension[4000] = ";";
    memset(extension + 1, 'e', sizeof(extension) - 2);
    expect_cut(toy, 1, extension, 1);
    toy_stop(toy);
}

/* What a connection has brought before is no framing of this body. */
Test(http_server, framing_is_counted_from_the_body_on)
{
    enum { CHUNKS = 300, BEFORE = 9000 };
    struct toy *toy = toy_start((struct http_server_config){.max_body = 10000}, TOY_THREAD);
    struct answer answer;
    char body[BEFORE] = {0}, chunks[CHUNKS * 6 + 1] = "";
    int fd = toy_connect(toy);
    for (int i = 0; i < 2 * REQUEST_FRAMING_FACTOR; i++) {
        toy_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9000\r\n\r\n");
        toy_send_n(fd, body, sizeof(body));
        cr_assert(toy_answer(fd, &answer));
        cr_assert_eq(answer.status, 200);
    }
    for (size_t i = 0; i < CHUNKS; i++) {
        memcpy(chunks + 6 * i, "1\r\nx\r\n", 7);
    }
    toy_send(fd, "POST /echo HTTP/1.1\r\n" HOST CHUNKED "\r\n");
    toy_send(fd, chunks);
    toy_send(fd, "0\r\n\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 200);
    cr_expect_eq(answer.n, (size_t)CHUNKS);
    (void)close(fd);
    toy_stop(toy);
}

Test(http_server, content_codings_that_are_not_known)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct answer answer;
    (void)ask(toy,
        "POST /echo HTTP/1.1\r\n" HOST "Content-Encoding: br\r\nContent-Length: 1\r\n\r\na", 415,
        &answer);
    expect_problem(&answer);
    expect_header(&answer, "Accept-Encoding", "gzip");
    toy_stop(toy);
}

Test(http_server, bodies_share_their_memory)
{
    struct toy *toy = toy_start(
        (struct http_server_config){.max_body = 100000, .max_body_memory = 100000}, TOY_THREAD);
    struct answer answer;
    char *body = calloc(1, 90000);
    int first = toy_connect(toy);
    toy_send(first, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 90000\r\n\r\n");
    toy_send_n(first, body, 89999);
    while (toy_stats(toy).body_bytes < 89999) {
        (void)usleep(1000);
    }
    (void)ask(toy, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 70000\r\n\r\n", 503, &answer);
    expect_problem(&answer);
    expect_header(&answer, "Retry-After", "1");
    (void)ask(toy, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab", 200, &answer);
    toy_send_n(first, body, 1);
    cr_assert(toy_answer(first, &answer));
    cr_expect_eq(answer.status, 200);
    cr_expect_eq(toy_stats(toy).refused_memory, 1);
    free(body);
    (void)close(first);
    toy_stop(toy);
}

Test(http_server, clients_that_leave_while_they_wait)
{
    struct toy *toy = toy_start(defaults, TOY_HOLD);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    for (int i = 0; i < 2; i++) {
        int fd = toy_connect(toy);
        toy_send(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\nGET /now HTTP/1.1\r\n" HOST "\r\n");
        toy_await_lent(toy, i + 1);
        if (i == 1) {
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        (void)close(fd);
    }
    toy_let_go(toy);
    toy_await_connections(toy, 0);
    cr_expect_eq(toy_stats(toy).suspended, 0);
    toy_stop(toy);
}

/* A reset ends the connection at once.  Its request goes on until storage is done with it, job by
 * job, and is counted then. */
Test(http_server, a_client_that_resets_its_connection_while_jobs_are_lent)
{
    static const char *rows[] = {"GET /wait HTTP/1.1\r\n" HOST "\r\n",
        "POST /wait HTTP/1.1\r\n" HOST "Content-Length: 9000\r\n\r\n",
        "GET /again?abc HTTP/1.1\r\n" HOST "\r\n"};
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    char body[9000];
    memset(body, 'x', sizeof(body));
    for (size_t i = 0; i < ROWS(rows); i++) {
        unsigned n, status;
        size_t route;
        struct toy *toy = toy_start(defaults, TOY_HOLD);
        int fd = toy_connect(toy);
        toy_send(fd, rows[i]);
        toy_send_n(fd, body, i == 1 ? sizeof(body) : 0);
        toy_await_lent(toy, 1);
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        (void)close(fd);
        toy_await_connections(toy, 0);
        cr_expect_eq(toy_stats(toy).suspended, 1);
        toy_observed(toy, &n, &route, &status);
        cr_expect_eq(n, 0u);
        toy_let_go(toy);
        toy_await_observed(toy, 1);
        toy_observed(toy, &n, &route, &status);
        cr_expect_eq(n, 1u);
        cr_expect_eq(status, 200u);
        toy_stop(toy);
    }
}

/* .. also where the server stops meanwhile. */
Test(http_server, stops_after_a_client_has_reset_its_connection)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct toy *toy = toy_start(defaults, TOY_HOLD);
    int fd = toy_connect(toy);
    toy_send(fd, "GET /again?abc HTTP/1.1\r\n" HOST "\r\n");
    toy_await_lent(toy, 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    (void)close(fd);
    toy_await_connections(toy, 0);
    toy_let_go(toy);
    toy_stop(toy);
}

Test(http_server, clients_that_leave_in_between)
{
    static const char *rows[] = {
        "POST /wait HTTP/1.1\r\n" HOST "Content-Length: 5000\r\n\r\nabc",
        "GET /wait HTTP/1.1\r\nHo",
        "GET /now HTTP/1.1\r\n" HOST "\r\n",
        "GET /big HTTP/1.1\r\n" HOST "\r\n",
        "GET /big HTTP/1.1\r\n" HOST "\r\nGET /now HTTP/1.1\r\n" HOST "\r\n",
        "",
    };
    struct toy *toy = toy_start((struct http_server_config){.request_timeout_ms = 500}, TOY_THREAD);
    for (size_t i = 0; i < 10 * ROWS(rows); i++) {
        int fd = toy_connect(toy);
        toy_send(fd, rows[i % ROWS(rows)]);
        (void)close(fd); /* data and end may come together: the library misses the end then */
    }
    struct answer answer;
    (void)ask(toy, "GET /now HTTP/1.1\r\n" HOST "\r\n", 200, &answer); /* all are accepted */
    int64_t since = toy_now_ms();
    toy_await_connections(toy, 0);
    cr_expect(toy_now_ms() - since < 2000, "ended clients are kept until they have idled");
    cr_expect_eq(toy_stats(toy).body_bytes, 0);
    cr_expect_eq(toy_stats(toy).unanswered, 0, "these clients did not wait for their answers");
    toy_stop(toy);
}

Test(http_server, an_address_that_is_taken)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    const char *error = NULL;
    struct http_server_config config = {.host = "127.0.0.1",
        .port = http_server_port(toy_server(toy)),
        .threads = 1,
        .max_connections = 1,
        .request_timeout_ms = 1000,
        .idle_timeout_ms = 1000};
    cr_expect_null(http_server_start(&config, &error));
    cr_expect_not_null(strstr(error, "in use"), "%s", error);
    config.host = "no.such.host.invalid";
    cr_expect_null(http_server_start(&config, &error));
    cr_expect_not_null(strstr(error, "host"), "%s", error);
    toy_stop(toy);
}
