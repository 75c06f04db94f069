#include "service/http/acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define AGAIN_MS 100 /* the pause after the system refused a descriptor or memory */
#define ROOM_MS  10  /* the pause after `full` was called for want of room */

/* Hand over the connections that wait.  False: the system has no descriptors or memory for one. */
static bool take_all(struct acceptor *a)
{
    while (!atomic_load(&a->stopping) && atomic_load(&a->room) > 0) {
        union {
            struct sockaddr any;
            struct sockaddr_in6 v6;
        } peer = {.v6 = {0}};
        socklen_t n = sizeof(peer);
        int fd = accept4(a->listen_fd, &peer.any, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)atomic_fetch_sub(&a->room, 1);
            a->hand(a->data, fd, &peer.any, n);
        } else if (errno == EAGAIN) {
            return true;
        } else if (errno != ECONNABORTED && errno != EINTR) { /* ECONNABORTED: a client that left */
            return false;
        }
    }
    return true;
}

static void *run(void *data)
{
    struct acceptor *a = data;
    bool refused = false, asked = false;
    while (!atomic_load(&a->stopping)) {
        struct pollfd fds[2] = {{.fd = a->wake_fd, .events = POLLIN},
            {.fd = refused || asked ? -1 : a->listen_fd, .events = POLLIN}};
        (void)poll(fds, 2, refused ? AGAIN_MS : asked ? ROOM_MS : -1);
        if ((fds[0].revents & POLLIN) != 0) {
            eventfd_t ignored;
            (void)eventfd_read(a->wake_fd, &ignored);
        }
        asked = (fds[1].revents & POLLIN) != 0 && atomic_load(&a->room) <= 0;
        refused = !take_all(a);
        if (asked || refused) {
            a->full(a->data);
        }
    }
    return NULL;
}

bool acceptor_start(struct acceptor *a, int listen_fd, unsigned room, acceptor_hand *hand,
    acceptor_full *full, void *data)
{
    a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->wake_fd < 0) {
        return false;
    }
    a->listen_fd = listen_fd;
    a->hand = hand;
    a->full = full;
    a->data = data;
    atomic_init(&a->room, room);
    a->running = pthread_create(&a->thread, NULL, run, a) == 0;
    if (!a->running) {
        (void)close(a->wake_fd);
    }
    return a->running;
}

void acceptor_left(struct acceptor *a)
{
    if (atomic_fetch_add(&a->room, 1) == 0) { /* the thread may be waiting for room */
        (void)eventfd_write(a->wake_fd, 1);
    }
}

void acceptor_quiesce(struct acceptor *a)
{
    if (a->running && !atomic_exchange(&a->stopping, true)) {
        (void)eventfd_write(a->wake_fd, 1);
        (void)pthread_join(a->thread, NULL);
    }
}

void acceptor_stop(struct acceptor *a)
{
    acceptor_quiesce(a);
    if (a->running) {
        (void)close(a->wake_fd);
        a->running = false;
    }
}
