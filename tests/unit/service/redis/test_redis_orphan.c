/* A server that is just ending answers for a moment longer than it can be known as ours. */
#include "service/redis/redis_orphan.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/stand_in.h"

TestSuite(redis_orphan, .timeout = 60);

static char base[] = "/tmp/tallyd-unit-XXXXXX";
static char path[64];
static int listener = -1; /* this process's, which is no redis-server: as one without a name left */
static int64_t now_us, step_us;
static unsigned n_looks, ends_at;

static int64_t look_at_clock(void)
{
    n_looks++;
    if (n_looks == ends_at) {
        (void)close(listener);
    }
    now_us += step_us;
    return now_us;
}

static void setup(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    cr_assert_not_null(mkdtemp(base));
    (void)snprintf(path, sizeof(path), "%s/redis.sock", base);
    memcpy(address.sun_path, path, sizeof(path));
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(listener, 64), 0);
    stand_in.now_us = look_at_clock;
}

static void teardown(void)
{
    (void)unlink(path);
    (void)rmdir(base);
}

/* A killed redis-server has several threads.  Once the first of them has ended the process has no
 * directory any more, and its socket answers until the last one has ended. */
Test(redis_orphan, a_server_that_is_ending_is_waited_for, .init = setup, .fini = teardown)
{
    struct orphan orphan = {.pid = 1};
    char error[256] = "";
    ends_at = 5;
    cr_expect(
        redis_orphan_end(base, "redis-server", 1000, &orphan, error, sizeof(error)), "%s", error);
    cr_expect_eq(orphan.pid, 0, "it ended by itself");
}

Test(redis_orphan, a_foreign_server_is_refused_in_time, .init = setup, .fini = teardown)
{
    struct orphan orphan;
    char error[256] = "";
    step_us = 300000;
    cr_expect_not(redis_orphan_end(base, "redis-server", 1000, &orphan, error, sizeof(error)));
    cr_expect(strstr(error, "a server that is not ours") != NULL, "%s", error);
    cr_expect_leq(now_us, 3000000);
    (void)close(listener);
}
