/* What is left of a server's connection whose answer did not come: storage/lock/lock.h */
#include "storage/lock/lock.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/base/clock.h"

TestSuite(lock, .timeout = 60);

#define WAIT_MS 10000

/* Connect @server to a socket.  Returns the other end. */
static int connect_to(struct lock_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(listener, 1), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    server->redis = redis_open("127.0.0.1", ntohs(address.sin_port), &server->look,
        monotonic_ms() + WAIT_MS, server->why, sizeof(server->why));
    cr_assert_not_null(server->redis, "%s", server->why);
    int peer = accept(listener, NULL, NULL);
    cr_assert_geq(peer, 0);
    (void)close(listener);
    return peer;
}

/* An acquire that arrived later would take the lock for nobody. */
Test(lock, what_a_silent_server_has_not_got_yet_is_not_sent_on)
{
    static struct lock_server server;
    struct lock lock = {.key = {"lock", 4}, .token = "token", .lease_ms = 1000};
    char got[4096];
    int64_t number;
    ssize_t n;
    int peer = connect_to(&server);
    lock_ask_acquire(&server, &lock, NULL, 0);
    cr_expect_eq(lock_await(&server, monotonic_ms() + 1, &number), LOCK_UNKNOWN);
    cr_expect_null(server.redis);
    do {
        n = recv(peer, got, sizeof(got), 0);
    } while (n > 0);
    cr_expect(n < 0 && errno == ECONNRESET, "the kernel has given up what it had left");
    (void)close(peer);
}
