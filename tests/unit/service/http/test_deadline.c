/* Time and the end of the server: request timeouts, idle connections, quiesce and stop. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/toy_server.h"

#define HOST    "Host: h\r\n"
#define TIMEOUT 300
#define ID_MAX  128

static const struct http_server_config defaults;
static const struct http_server_config quick = {
    .request_timeout_ms = TIMEOUT, .idle_timeout_ms = 10 * TIMEOUT};
/* A machine that stands still for a moment reaches none of these. */
#define PATIENT 1000
static const struct http_server_config patient = {
    .request_timeout_ms = PATIENT, .idle_timeout_ms = 60 * PATIENT};

/* Send @text a byte every 10 ms until the server says something.  Returns how long that took. */
static int64_t trickle(int fd, const char *text)
{
    int64_t since = toy_now_ms();
    while (!toy_readable(fd, 10)) {
        cr_assert(toy_now_ms() - since < 4000, "the server waits for ever");
        if (send(fd, *text != '\0' ? text++ : "x", 1, MSG_NOSIGNAL) != 1) {
            break;
        }
    }
    return toy_now_ms() - since;
}

/* What comes is a 408 with @id, or with any if NULL, that says @why, and nothing behind it. */
static void expect_farewell_why(int fd, const char *id, const char *why)
{
    struct answer answer;
    char value[ID_MAX + 1];
    cr_assert(toy_answer(fd, &answer), "closed without a word");
    cr_expect_eq(answer.status, 408);
    cr_expect(answer_header(&answer, "X-Request-Id", value, sizeof(value)));
    if (id != NULL) {
        cr_expect_str_eq(value, id);
    }
    cr_expect(answer_header(&answer, "Connection", value, sizeof(value)));
    cr_expect_str_eq(value, "close");
    cr_expect_not_null(strstr(answer.body, why), "%s", answer.body);
    cr_expect(toy_ended(fd, 2000));
}

static void expect_farewell(int fd, const char *id)
{
    expect_farewell_why(fd, id, "did not come whole within 0.3 s");
}

/* @ms is the timeout, give or take what the reaper's look and a busy machine add. */
static void expect_timeout(int64_t ms)
{
    cr_expect(ms >= TIMEOUT - 60 && ms < TIMEOUT + 600, "%d ms", (int)ms);
}

static const char *const slow[] = {
    "GET /now HTTP/1.1\r\n" HOST "X: ",                                 /* in a field */
    "GET /nowxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", /* in the request line */
};

/* Success scenarios */

Test(http_deadline, trickled_heads_are_cut_off)
{
    struct toy *toy = toy_start(quick, TOY_THREAD);
    for (size_t i = 0; i < 2; i++) {
        int fd = toy_connect(toy);
        expect_timeout(trickle(fd, slow[i]));
        expect_farewell(fd, NULL);
        (void)close(fd);
    }
    toy_await_connections(toy, 0);
    cr_expect_eq(toy_stats(toy).late, 2);
    toy_stop(toy);
}

Test(http_deadline, trickled_heads_behind_another_request_are_cut_off)
{
    struct toy *toy = toy_start(quick, TOY_THREAD);
    struct answer answer;
    static const char *const first[] = {
        "GET /now HTTP/1.1\r\n" HOST "\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < 4; i++) {
        int fd = toy_connect(toy);
        toy_send(fd, first[i % 2]);
        cr_assert(toy_answer(fd, &answer));
        expect_timeout(trickle(fd, slow[i / 2]));
        expect_farewell(fd, NULL);
        (void)close(fd);
    }
    toy_stop(toy);
}

Test(http_deadline, a_head_that_begins_and_falls_silent_is_cut_off)
{
    struct toy *toy = toy_start(quick, TOY_THREAD);
    struct answer answer;
    static const char *const rows[] = {
        "GET /no", "GET /now HTTP/1.1\r\nHos", "GET /now HTTP/1.1\r\n" HOST "\r\nGET /no"};
    for (size_t i = 0; i < 3; i++) {
        int fd = toy_connect(toy);
        int64_t since = toy_now_ms();
        toy_send(fd, rows[i]);
        if (i == 2) {
            cr_assert(toy_answer(fd, &answer));
        }
        cr_expect(toy_readable(fd, 2000), "row %zu", i);
        expect_timeout(toy_now_ms() - since);
        expect_farewell(fd, NULL);
        (void)close(fd);
    }
    toy_stop(toy);
}

/* Its time is not over, so the 408 must not say so. */
Test(http_deadline, a_slow_request_that_makes_room_is_told_why)
{
    struct http_server_config narrow = patient;
    narrow.request_timeout_ms = 60 * PATIENT;
    narrow.max_connections = 1;
    struct toy *toy = toy_start(narrow, TOY_THREAD);
    struct answer answer;
    int slow_fd = toy_connect(toy);
    toy_send(slow_fd, "GET /now HTTP/1.1\r\nHos");
    toy_await_connections(toy, 1);
    int fd = toy_connect(toy);
    toy_send(fd, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 200);
    expect_farewell_why(slow_fd, NULL, "all connections were taken (--max-connections,");
    (void)close(fd);
    (void)close(slow_fd);
    toy_stop(toy);
}

Test(http_deadline, trickled_bodies_are_cut_off)
{
    struct toy *toy = toy_start(quick, TOY_THREAD);
    static const char *const rows[] = {
        "POST /echo HTTP/1.1\r\n" HOST "X-Request-Id: me\r\nContent-Length: 9999\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST
        "X-Request-Id: me\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n",
        "POST /none HTTP/1.1\r\n" HOST
        "X-Request-Id: me\r\nContent-Length: 9999\r\n\r\n", /* swallowed */
    };
    unsigned n, status;
    size_t route;
    for (size_t i = 0; i < 3; i++) {
        int fd = toy_connect(toy);
        toy_send(fd, rows[i]);
        expect_timeout(trickle(fd, ""));
        expect_farewell(fd, "me");
        (void)close(fd);
    }
    toy_await_connections(toy, 0);
    toy_await_observed(toy, 3);
    toy_observed(toy, &n, &route, &status);
    cr_expect_eq(status, 408);
    cr_expect_eq(toy_stats(toy).body_bytes, 0);
    toy_stop(toy);
}

Test(http_deadline, storage_is_given_less_than_the_timeout)
{
    struct toy *toy = toy_start(quick, TOY_HOLD);
    struct answer answer;
    int fd = toy_connect(toy);
    int64_t since = toy_now_ms();
    toy_send(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(fd, &answer), "cut off while it waited");
    cr_expect_eq(answer.status, 503);
    expect_timeout(toy_now_ms() - since);
    toy_send(fd, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    cr_expect(toy_answer(fd, &answer), "closed");
    (void)close(fd);
    toy_stop(toy);
}

Test(http_deadline, silent_connections_may_idle_longer)
{
    struct toy *toy = toy_start(patient, TOY_THREAD);
    struct answer answer;
    static const char *const first[] = {"GET /now HTTP/1.1\r\n" HOST "\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\na",
        "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"};
    int used[3], fresh = toy_connect(toy);
    for (size_t i = 0; i < 3; i++) {
        used[i] = toy_connect(toy);
        toy_send(used[i], first[i]);
        cr_assert(toy_answer(used[i], &answer));
    }
    cr_expect_not(toy_ended(used[0], 3 * PATIENT));
    cr_expect_not(toy_ended(fresh, 0));
    for (size_t i = 0; i < 3; i++) {
        cr_expect_not(toy_readable(used[i], 0), "connection %zu", i);
        toy_send(used[i], "GET /now HTTP/1.1\r\n" HOST "\r\n");
        cr_assert(toy_answer(used[i], &answer));
        cr_expect_eq(answer.status, 200);
    }
    cr_expect_eq(toy_stats(toy).late, 0);
    for (size_t i = 0; i < 3; i++) {
        (void)close(used[i]);
    }
    (void)close(fresh);
    toy_stop(toy);
}

Test(http_deadline, idle_connections_are_not_kept_for_ever)
{
    struct toy *toy = toy_start(quick, TOY_THREAD);
    struct answer answer;
    int used = toy_connect(toy), fresh = toy_connect(toy);
    toy_send(used, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(used, &answer));
    cr_expect(toy_ended(fresh, 20 * TIMEOUT));
    cr_expect(toy_ended(used, 20 * TIMEOUT));
    (void)close(used);
    (void)close(fresh);
    toy_stop(toy);
}

Test(http_deadline, an_answer_that_nobody_reads_ends)
{
    struct toy *toy = toy_start(
        (struct http_server_config){.request_timeout_ms = 100, .idle_timeout_ms = 100}, TOY_THREAD);
    int fd = toy_connect(toy);
    toy_send(fd, "GET /big HTTP/1.1\r\n" HOST "\r\n");
    toy_await_connections(toy, 1);
    toy_await_connections(toy, 0);
    (void)close(fd);
    toy_stop(toy);
}

/* The timeout of a request is none of its answer's. */
Test(http_deadline, an_answer_may_be_read_later)
{
    struct toy *toy = toy_start(quick, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(fd, "GET /big HTTP/1.1\r\n" HOST "\r\n");
    (void)usleep(3 * TIMEOUT * 1000); /* what the test is about: nobody reads meanwhile */
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 200);
    cr_expect_eq(answer.n, (size_t)4 << 20);
    (void)close(fd);
    toy_stop(toy);
}

Test(http_deadline, quiesce_refuses_new_connections_and_serves_the_old)
{
    struct toy *toy = toy_start((struct http_server_config){.threads = 2}, TOY_THREAD);
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(fd, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(fd, &answer));
    http_server_quiesce(toy_server(toy));
    http_server_quiesce(toy_server(toy));
    cr_expect_not(toy_can_connect(toy));
    toy_send(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_str_eq(answer.body, "waited");
    cr_expect_not_null(strstr(answer.head, "Connection: close"));
    cr_expect(toy_ended(fd, 2000));
    (void)close(fd);
    toy_stop(toy);
}

/* The order of main(): quiesce, drain storage, stop.  Nothing that was taken is lost. */
Test(http_deadline, stop_answers_what_is_in_flight)
{
    struct toy *toy = toy_start((struct http_server_config){.threads = 2}, TOY_HOLD);
    struct answer answer;
    int fds[20];
    for (int i = 0; i < 20; i++) {
        fds[i] = toy_connect(toy);
        toy_send(fds[i], "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    }
    toy_await_lent(toy, 20);
    http_server_quiesce(toy_server(toy));
    toy_let_go(toy);
    toy_stop_within(toy, 2000);
    for (int i = 0; i < 20; i++) {
        cr_assert(toy_answer(fds[i], &answer), "connection %d got no answer", i);
        cr_expect_str_eq(answer.body, "waited");
        (void)close(fds[i]);
    }
}

/* http_server_stop() on a thread of its own. */
struct stopping {
    struct toy *toy;
    int64_t grace_ms;
    pthread_t thread;
};

static void *run_stop(void *data)
{
    struct stopping *stopping = data;
    toy_stop_within(stopping->toy, stopping->grace_ms);
    return NULL;
}

static void begin_stop(struct stopping *stopping)
{
    cr_assert_eq(pthread_create(&stopping->thread, NULL, run_stop, stopping), 0);
    int64_t since = toy_now_ms();
    while (toy_can_connect(stopping->toy)) {
        cr_assert(toy_now_ms() - since < 3000, "it still listens");
    }
}

Test(http_deadline, stop_gives_grace_to_a_body_under_way)
{
    struct toy *toy = toy_start(defaults, TOY_THREAD);
    struct stopping stopping = {.toy = toy, .grace_ms = 3000};
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(
        fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    cr_assert(toy_answer(fd, &answer)); /* it has begun */
    begin_stop(&stopping);
    cr_expect_not(toy_ended(fd, 100));
    toy_send(fd, "abc");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_str_eq(answer.body, "abc");
    (void)close(fd);
    (void)pthread_join(stopping.thread, NULL);
}

/* Failure scenarios */

/* The grace is over, a last job is still lent: nothing more is lent beside it. */
/* The request has a minute, and the handler allows its job a part of a second. */
Test(http_deadline, a_job_may_be_due_before_its_request)
{
    struct toy *toy =
        toy_start((struct http_server_config){.request_timeout_ms = 60 * PATIENT}, TOY_HOLD);
    struct answer answer;
    int fd = toy_connect(toy);
    toy_send(fd, "GET /wait?hasty HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(fd, &answer));
    cr_expect_eq(answer.status, 503);
    (void)close(fd);
    toy_stop(toy);
}

Test(http_deadline, requests_that_come_too_late_get_503)
{
    struct toy *toy = toy_start((struct http_server_config){.request_timeout_ms = 4000}, TOY_HOLD);
    struct stopping stopping = {.toy = toy, .grace_ms = 0};
    struct answer answer;
    int waits = toy_connect(toy), late = toy_connect(toy);
    toy_send(waits, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    toy_send(late, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(late, &answer)); /* accepted, and kept */
    toy_await_lent(toy, 1);
    int64_t since = toy_now_ms();
    begin_stop(&stopping);
    toy_send(late, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    cr_assert(toy_answer(late, &answer));
    cr_expect_eq(answer.status, 503);
    cr_expect(toy_now_ms() - since < 3500, "it was lent until its deadline");
    cr_expect_not_null(strstr(answer.body, "stopping"), "%s", answer.body);
    (void)close(waits);
    (void)close(late);
    (void)pthread_join(stopping.thread, NULL);
}

/* Its 408 may come before the end: the request was begun when the job was, and is as late. */
static bool ends_in_the_end(int fd)
{
    char bytes[512];
    while (toy_readable(fd, 1000)) {
        if (recv(fd, bytes, sizeof(bytes), 0) <= 0) {
            return true;
        }
    }
    return false;
}

Test(http_deadline, stop_waits_for_lent_jobs_and_no_longer)
{
    struct toy *toy =
        toy_start((struct http_server_config){.request_timeout_ms = PATIENT}, TOY_HOLD);
    int waits = toy_connect(toy), sends = toy_connect(toy), idles = toy_connect(toy);
    toy_send(waits, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    toy_send(sends, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
    toy_await_lent(toy, 1);
    toy_await_connections(toy, 3);
    int64_t since = toy_now_ms();
    toy_stop_within(toy, 0); /* no grace: the job still ends by its deadline */
    cr_expect(toy_now_ms() - since < 3 * PATIENT);
    cr_expect(ends_in_the_end(sends));
    cr_expect(toy_ended(idles, 1000));
    (void)close(waits);
    (void)close(sends);
    (void)close(idles);
}

/* Clients that go on asking while the server stops must not keep it, nor find a suspended
 * connection under it (the library would abort). */
Test(http_deadline, stop_under_load)
{
    for (int round = 0; round < 10; round++) {
        struct toy *toy = toy_start((struct http_server_config){.threads = 2}, TOY_THREAD);
        int fds[16];
        for (int i = 0; i < 16; i++) {
            fds[i] = toy_connect(toy);
            for (int k = 0; k < 50; k++) { /* pipelined */
                toy_send(fds[i], "GET /wait HTTP/1.1\r\n" HOST "\r\n");
            }
        }
        toy_stop_within(toy, round * 2);
        for (int i = 0; i < 16; i++) {
            (void)close(fds[i]);
        }
    }
}

Test(http_deadline, server_may_start_and_stop_at_once)
{
    for (int i = 0; i < 50; i++) {
        toy_stop(toy_start((struct http_server_config){.threads = 2}, TOY_THREAD));
    }
}
