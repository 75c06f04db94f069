#include "storage/redis/redis.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/base/clock.h"

TestSuite(redis, .timeout = 60);

#define QUEUED 8 /* more connects than a queue for none takes */

static bool gives_up(void *data)
{
    (void)data;
    return false;
}

/* Connect to a server whose queue is full, so that the connect stays under way. */
static void expect_open_error(const struct redis_look *look, const char *expected)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int queued[QUEUED];
    char error[160];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(listener, 0), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    for (size_t i = 0; i < QUEUED; i++) {
        queued[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(queued[i], (struct sockaddr *)&address, sizeof(address));
    }
    cr_expect_null(redis_open(
        "127.0.0.1", ntohs(address.sin_port), look, monotonic_ms() + 200, error, sizeof(error)));
    cr_expect_str_eq(error, expected);
    for (size_t i = 0; i < QUEUED; i++) {
        (void)close(queued[i]);
    }
    (void)close(listener);
}

Test(redis, a_connect_says_how_its_wait_has_ended)
{
    expect_open_error(&(struct redis_look){0}, "connect timed out");
    expect_open_error(&(struct redis_look){.look = gives_up}, "connect was given up");
}
