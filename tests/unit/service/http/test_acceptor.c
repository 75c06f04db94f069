#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "service/http/acceptor.h"
#include "service/http/listen_socket.h"

#define HAND_MAX 8

/* Who takes connections over, and remembers them. */
struct taker {
    struct acceptor acceptor;
    int listen_fd;
    uint16_t port;
    pthread_mutex_t mu;
    pthread_cond_t more;
    int fds[HAND_MAX];
    unsigned n;
    atomic_uint n_full;
    bool from_here; /* each peer was 127.0.0.1, its descriptor as promised */
};

static void take(void *data, int fd, const struct sockaddr *peer, socklen_t peer_n)
{
    struct taker *taker = data;
    struct sockaddr_in from;
    bool named = peer_n == sizeof(from) && peer->sa_family == AF_INET;
    if (named) {
        memcpy(&from, peer, sizeof(from));
    }
    (void)pthread_mutex_lock(&taker->mu);
    taker->from_here =
        taker->from_here && named && from.sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
        (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    taker->fds[taker->n++] = fd;
    (void)pthread_cond_signal(&taker->more);
    (void)pthread_mutex_unlock(&taker->mu);
}

static void full(void *data)
{
    struct taker *taker = data;
    (void)atomic_fetch_add(&taker->n_full, 1);
}

static void await(struct taker *taker, unsigned n)
{
    (void)pthread_mutex_lock(&taker->mu);
    while (taker->n < n) {
        (void)pthread_cond_wait(&taker->more, &taker->mu);
    }
    (void)pthread_mutex_unlock(&taker->mu);
}

static unsigned taken(struct taker *taker)
{
    (void)pthread_mutex_lock(&taker->mu);
    unsigned n = taker->n;
    (void)pthread_mutex_unlock(&taker->mu);
    return n;
}

static void begin(struct taker *taker, unsigned room)
{
    const char *error;
    *taker = (struct taker){.from_here = true};
    (void)pthread_mutex_init(&taker->mu, NULL);
    (void)pthread_cond_init(&taker->more, NULL);
    taker->listen_fd = listen_socket_open("127.0.0.1", 0, &taker->port, &error);
    cr_assert(taker->listen_fd >= 0, "%s", error);
    cr_assert(acceptor_start(&taker->acceptor, taker->listen_fd, room, take, full, taker));
}

static void end(struct taker *taker)
{
    acceptor_stop(&taker->acceptor);
    cr_expect(taker->from_here);
    for (unsigned i = 0; i < taker->n; i++) {
        (void)close(taker->fds[i]);
    }
    (void)close(taker->listen_fd);
}

static int come(const struct taker *taker)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons(taker->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(fd >= 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Somebody waits in the kernel's queue. */
static bool waits(const struct taker *taker)
{
    struct pollfd listening = {.fd = taker->listen_fd, .events = POLLIN};
    return poll(&listening, 1, 5000) == 1;
}

/* Success scenarios */

Test(acceptor, takes_over_as_many_as_there_is_room_for)
{
    struct taker taker;
    begin(&taker, 2);
    int clients[] = {come(&taker), come(&taker), come(&taker), come(&taker)};
    await(&taker, 2);
    cr_expect(waits(&taker));
    cr_expect_eq(taken(&taker), 2);
    while (atomic_load(&taker.n_full) < 3) { /* room is asked for, again and again */
        (void)poll(NULL, 0, 1);
    }
    for (unsigned n = 3; n <= 4; n++) { /* as one leaves, one comes */
        acceptor_left(&taker.acceptor);
        await(&taker, n);
    }
    cr_expect_eq(taken(&taker), 4);
    for (size_t i = 0; i < 4; i++) {
        (void)close(clients[i]);
    }
    end(&taker);
}

Test(acceptor, takes_nobody_over_once_it_was_told)
{
    struct taker taker;
    begin(&taker, 8);
    int first = come(&taker);
    await(&taker, 1);
    acceptor_quiesce(&taker.acceptor);
    acceptor_quiesce(&taker.acceptor);
    int second = come(&taker);
    acceptor_left(&taker.acceptor); /* those that are open still end */
    cr_expect(waits(&taker));
    cr_expect_eq(taken(&taker), 1);
    (void)close(first);
    (void)close(second);
    end(&taker);
}

/* Failure scenarios */

Test(acceptor, one_that_was_not_started_ends)
{
    struct acceptor never = {.listen_fd = -1};
    acceptor_quiesce(&never);
    acceptor_stop(&never);
}

Test(acceptor, no_descriptor_is_to_be_had_for_a_moment)
{
    struct taker taker;
    struct rlimit before, none;
    begin(&taker, 8);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)client + 1; /* all below are in use */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons(taker.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cr_assert_eq(connect(client, (const struct sockaddr *)&to, sizeof(to)), 0);
    cr_expect(waits(&taker));
    cr_expect_eq(taken(&taker), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    await(&taker, 1);
    (void)close(client);
    end(&taker);
}
