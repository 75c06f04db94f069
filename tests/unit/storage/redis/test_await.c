#include "storage/redis/connect.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "storage/base/clock.h"
#include "storage/redis/resp.h"

/* How a thread waits for a reply: it sleeps, and looks only for the rest of what has begun. */
TestSuite(redis_await, .timeout = 60);

static unsigned looks;

/* In the place of the C library's: redis.c calls it between two looks. */
int sched_yield(void)
{
    looks++;
    return 0;
}

#define WAIT_US 20000

/* Answers each command with two pieces of bytes and a pause between them. */
struct fake_redis {
    struct sockaddr_un address;
    int listener;
    const char *first, *rest;
};

static void send_text(int fd, const char *text)
{
    cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void *serve(void *data)
{
    struct fake_redis *fake = data;
    char bytes[256];
    int fd = accept(fake->listener, NULL, NULL);
    while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0) {
        send_text(fd, fake->first);
        (void)usleep(WAIT_US);
        send_text(fd, fake->rest);
    }
    (void)close(fd);
    return NULL;
}

/* Ask twice, and say how often the thread looked for the second answer instead of sleeping. */
static unsigned looks_for(const char *first, const char *rest, size_t n_replies)
{
    struct fake_redis fake = {.first = first, .rest = rest};
    pthread_t thread;
    char error[160];
    char directory[] = "/tmp/tallyd-unit-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    fake.address.sun_family = AF_UNIX;
    (void)snprintf(fake.address.sun_path, sizeof(fake.address.sun_path), "%s/s", directory);
    fake.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fake.listener, (struct sockaddr *)&fake.address, sizeof(fake.address)), 0);
    cr_assert_eq(listen(fake.listener, 1), 0);
    cr_assert_eq(pthread_create(&thread, NULL, serve, &fake), 0);

    struct redis_endpoint endpoint = {.db = 0};
    memcpy(endpoint.address.host, fake.address.sun_path, sizeof(fake.address.sun_path));
    struct redis_look none = {0};
    int64_t deadline_ms = monotonic_ms() + 10000;
    struct redis *redis = redis_connect(&endpoint, NULL, &none, deadline_ms, error, sizeof(error));
    cr_assert_not_null(redis, "%s", error);
    struct buffer out;
    buffer_init(&out);
    resp_command(&out, "PING", NULL);
    for (int i = 0; i < 2; i++) {
        looks = 0;
        cr_assert(redis_queue(redis, &out));
        for (size_t reply = 0; reply < n_replies; reply++) {
            const struct reply *got = NULL;
            cr_assert_eq(redis_await(redis, deadline_ms, &got), REDIS_OK_STATUS);
        }
    }
    buffer_release(&out);
    redis_close(redis);
    (void)pthread_join(thread, NULL);
    (void)close(fake.listener);
    (void)unlink(fake.address.sun_path);
    (void)rmdir(directory);
    return looks;
}

Test(redis_await, sleeps_where_nothing_has_come_of_the_next_reply)
{
    cr_expect_eq(looks_for("+OK\r\n", "+OK\r\n", 2), 0u);
    cr_expect_eq(looks_for("*2\r\n:1\r\n:2\r\n", "$2\r\nab\r\n", 2), 0u);
}

Test(redis_await, looks_for_the_rest_of_a_reply)
{
    cr_expect_gt(looks_for("$6\r\nabc", "def\r\n", 1), 0u);
    cr_expect_gt(looks_for("*2\r\n", ":1\r\n:2\r\n", 1), 0u);
    cr_expect_gt(looks_for("*2\r\n*1\r\n:1\r\n", ":2\r\n", 1), 0u);
}
