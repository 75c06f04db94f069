#include "storage/redis/redis.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "storage/base/clock.h"

/* What is queued arrives whole and in order, however little the socket takes at a time. */
TestSuite(redis_send, .timeout = 60);

#define LONG_N  ((size_t)4 * 1024 * 1024) /* more than a socket holds */
#define WAIT_MS 10000
#define SOON_MS 50

/* ---- a socket that takes little ---- */

/* What the next calls of send() come to: so many bytes at most, or an error's number below zero.
 * Behind them all calls are as the last one. */
static const ssize_t *course;
static size_t n_course;

#define TAKES(...)                                                                                 \
    do {                                                                                           \
        static const ssize_t takes[] = {__VA_ARGS__};                                              \
        course = takes;                                                                            \
        n_course = sizeof(takes) / sizeof(takes[0]);                                               \
    } while (0)

/* In the place of the C library's. */
ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    ssize_t most = n_course == 0 ? SSIZE_MAX : *course;
    if (n_course > 1) {
        course++;
        n_course--;
    }
    if (most < 0) {
        errno = (int)-most;
        return -1;
    }
    return sendto(fd, bytes, n < (size_t)most ? n : (size_t)most, flags, NULL, 0);
}

/* ---- the other end ---- */

static struct redis *redis;
static int peer;
static struct buffer got; /* what came there */
static pthread_t thread;
static size_t answers_at; /* a reply is written once so many bytes came.. */
static size_t ends_at;    /* ..and the connection is closed there */

static struct redis_look look;

static void connect_both(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char directory[] = "/tmp/tallyd-unit-XXXXXX";
    char error[160];
    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(listener, 1), 0);
    redis = redis_open(address.sun_path, 0, &look, monotonic_ms() + WAIT_MS, error, sizeof(error));
    cr_assert_not_null(redis, "%s", error);
    peer = accept(listener, NULL, NULL);
    cr_assert_geq(peer, 0);
    (void)close(listener);
    (void)unlink(address.sun_path);
    (void)rmdir(directory);
}

static void close_both(void)
{
    redis_close(redis);
    (void)close(peer);
    buffer_release(&got);
}

static void *read_all(void *data)
{
    char bytes[4096];
    ssize_t n = 1;
    bool answered = false;
    while (n > 0 && got.n < ends_at) {
        n = read(peer, bytes, sizeof(bytes));
        buffer_append(&got, bytes, n > 0 ? (size_t)n : 0);
        if (!answered && got.n >= answers_at) {
            answered = true;
            cr_assert_eq(write(peer, "+OK\r\n", 5), 5);
        }
    }
    return data;
}

/* From now on what comes is read, up to the @end; there is a reply @answer bytes behind here. */
static void read_beside(size_t answer, size_t end)
{
    answers_at = got.n + answer;
    ends_at = got.n + end;
    cr_assert_eq(pthread_create(&thread, NULL, read_all, NULL), 0);
}

static void check_got(const char *expected)
{
    (void)pthread_join(thread, NULL);
    cr_expect(
        slice_equal((struct slice){got.p, got.n}, slice_of(expected)), "%.*s", (int)got.n, got.p);
}

/* ---- what is sent ---- */

static bool queue(const char *text)
{
    struct buffer b;
    buffer_init(&b);
    buffer_text(&b, text);
    bool ok = redis_queue(redis, &b);
    buffer_release(&b);
    return ok;
}

/* LONG_N bytes, each run of 256 its own. */
static void queue_long(void)
{
    struct buffer b;
    buffer_init(&b);
    for (size_t i = 0; i < LONG_N; i++) {
        buffer_append(&b, &(char){(char)(i * 31 + i / 256)}, 1);
    }
    cr_assert(redis_queue(redis, &b));
    buffer_release(&b);
}

static enum redis_status await_ok(int64_t within_ms)
{
    const struct reply *reply = NULL;
    enum redis_status status = redis_await(redis, monotonic_ms() + within_ms, &reply);
    cr_expect(status != REDIS_OK_STATUS || slice_equal(reply->text, SLICE("OK")));
    return status;
}

Test(redis_send, a_byte_at_a_time)
{
    connect_both();
    TAKES(1, -EAGAIN, 1, -EINTR, -EINTR, 3, -EAGAIN, -EAGAIN, 1);
    cr_assert(queue("one command, then the next"));
    read_beside(26, 26);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_OK_STATUS);
    check_got("one command, then the next");
    close_both();
}

Test(redis_send, queues_behind_what_is_half_sent)
{
    bool left = false;
    connect_both();
    TAKES(5, -EAGAIN, 4, SSIZE_MAX);
    cr_assert(queue("first "));
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect(left);
    cr_assert(queue("second "));
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect(left);
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect(left);
    cr_assert(queue("third"));
    read_beside(18, 18);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_OK_STATUS);
    check_got("first second third");
    close_both();
}

/* A writer that always has more to say: memory follows what is left, not all that was said. */
Test(redis_send, memory_is_that_of_what_is_left)
{
    const size_t rounds = 20000, n = 32;
    size_t came = 0;
    bool left = false;
    connect_both();
    TAKES(31, 32);
    struct mallinfo2 before = mallinfo2();
    for (size_t i = 0; i < rounds; i++) {
        char bytes[64];
        cr_assert(queue("a text of 32 bytes for the other"));
        cr_assert_eq(redis_send(redis, &left), REDIS_OK_STATUS);
        cr_assert(left); /* one byte */
        came += (size_t)read(peer, bytes, sizeof(bytes));
    }
    struct mallinfo2 after = mallinfo2();
    cr_expect_eq(came, rounds * n - 1);
    cr_expect_lt(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + 100000);
    close_both();
}

Test(redis_send, begins_anew_when_all_is_sent)
{
    bool left = true;
    connect_both();
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect_not(left); /* nothing is queued yet */
    for (int i = 0; i < 3; i++) {
        left = true;
        cr_assert(queue("again "));
        cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
        cr_expect_not(left);
    }
    read_beside(18, 18);
    check_got("again again again ");
    close_both();
}

Test(redis_send, a_reply_may_come_before_all_is_sent)
{
    connect_both();
    cr_assert_eq(write(peer, "+OK\r\n", 5), 5);
    TAKES(5, -EAGAIN, SSIZE_MAX);
    cr_assert(queue("first second"));
    cr_expect_eq(await_ok(WAIT_MS), REDIS_OK_STATUS);
    read_beside(12, 12);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_OK_STATUS);
    check_got("first second");
    close_both();
}

Test(redis_send, more_than_the_socket_holds)
{
    bool left = false;
    connect_both();
    queue_long();
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect(left);
    cr_assert(queue("behind"));
    read_beside(LONG_N + 6, LONG_N + 6);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_OK_STATUS);
    (void)pthread_join(thread, NULL);
    size_t wrong = 0;
    for (size_t i = 0; i < LONG_N; i++) {
        wrong += got.p[i] != (char)(i * 31 + i / 256);
    }
    cr_expect_eq(wrong, 0u);
    cr_expect(slice_equal((struct slice){got.p + LONG_N, 6}, SLICE("behind")));
    got.n = 0;
    cr_assert(queue("small"));
    read_beside(5, 5);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_OK_STATUS);
    check_got("small");
    close_both();
}

Test(redis_send, ends_at_the_deadline_where_nobody_reads)
{
    connect_both();
    queue_long();
    cr_expect_eq(await_ok(SOON_MS), REDIS_TIMEOUT);
    close_both();
}

Test(redis_send, ends_after_silence_where_nobody_reads)
{
    look.silence_ms = SOON_MS;
    connect_both();
    queue_long();
    int64_t begin_ms = monotonic_ms();
    cr_expect_eq(await_ok(WAIT_MS), REDIS_TIMEOUT);
    cr_expect_lt(monotonic_ms() - begin_ms, WAIT_MS / 2);
    close_both();
}

Test(redis_send, a_connection_that_is_lost_in_the_middle)
{
    bool left;
    connect_both();
    TAKES(5, -EAGAIN, -EPIPE);
    cr_assert(queue("first second"));
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect_eq(redis_send(redis, &left), REDIS_LOST);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_LOST);
    close_both();
}

Test(redis_send, a_peer_that_closes_in_the_middle)
{
    bool left = false;
    connect_both();
    queue_long();
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect(left);
    read_beside(SIZE_MAX, 1000);
    (void)pthread_join(thread, NULL);
    (void)shutdown(peer, SHUT_RDWR);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_LOST);
    close_both();
}

/* ---- out of memory ---- */

Test(redis_send, nothing_of_a_broken_buffer_is_queued)
{
    bool left;
    connect_both();
    TAKES(5, SSIZE_MAX);
    cr_assert(queue("first "));
    cr_expect_eq(redis_send(redis, &left), REDIS_OK_STATUS);
    cr_expect_not(
        redis_queue(redis, &(struct buffer){.p = (char[]){"half"}, .n = 4, .failed = true}));
#ifndef __SANITIZE_ADDRESS__ /* which aborts where malloc fails */
    cr_expect_not(redis_queue(redis, &(struct buffer){.n = SIZE_MAX / 4}));
#endif
    cr_assert(queue("second"));
    read_beside(12, 12);
    cr_expect_eq(await_ok(WAIT_MS), REDIS_OK_STATUS);
    check_got("first second");
    close_both();
}
