/* acceptor.h - takes connections from a listening socket, as long as there is room for more.
 *
 * Layer: service.  Knows sockets and one thread of its own; no HTTP library.
 *
 * Who waits while there is no room stays in the kernel's queue.  Where the system is out of
 * descriptors or memory it tries again a moment later.  The thread sleeps while nobody comes.
 *
 * Thread safety: acceptor_left() from any thread; the others from one.
 */
#ifndef SERVICE_HTTP_ACCEPTOR_H
#define SERVICE_HTTP_ACCEPTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* What takes a connection over, on the acceptor's thread: @fd, which does not block and is not
 * inherited by children, is its own from then on.  @peer lives for the call. */
typedef void acceptor_hand(void *data, int fd, const struct sockaddr *peer, socklen_t peer_n);

/* Embedded in the caller's, for connections come and go before acceptor_start() has returned; all
 * zero before that.  The fields are private. */
struct acceptor {
    int listen_fd, wake_fd;
    acceptor_hand *hand;
    void *data;
    pthread_t thread;
    bool running; /* the owner's thread alone */
    atomic_bool stopping;
    _Atomic int64_t room;
};

/* Take connections from @listen_fd, which must not block and stays the caller's, at most @room at
 * once.  False if descriptors or threads are out. */
bool acceptor_start(struct acceptor *acceptor, int listen_fd, unsigned room, acceptor_hand *hand,
    void *data) __attribute__((warn_unused_result));

/* A connection that was handed over is no more: there is room for another. */
void acceptor_left(struct acceptor *acceptor);

/* Take no more: when this returns the thread has ended.  Fine for one that was never started. */
void acceptor_quiesce(struct acceptor *acceptor);

/* Quiesce and release; acceptor_left() must not be called any more. */
void acceptor_stop(struct acceptor *acceptor);

#endif
