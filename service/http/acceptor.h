/* acceptor.h - take connections from a listening socket, as long as there is room for more.
 *
 * Layer: service.  Knows sockets and one thread of its own; no HTTP library.
 *
 * While there is no room, connections wait in the kernel's queue, and `full` is called.  When the
 * system is out of descriptors or memory, the acceptor tries again a moment later.  Its thread
 * sleeps while nobody connects.
 *
 * Thread safety: acceptor_left() may be called from any thread, the other functions from one.
 */
#ifndef SERVICE_HTTP_ACCEPTOR_H
#define SERVICE_HTTP_ACCEPTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "storage/base/compiler.h"

/* Take a connection over, on the acceptor's thread.  @fd is the function's own from then on: a
 * socket that does not block and that children do not inherit.  @peer lives for the call. */
typedef void acceptor_hand(void *data, int fd, const struct sockaddr *peer, socklen_t peer_n);

/* A connection waits, and there is no room or no descriptor: the function ends connections that are
 * of no use, if there are any.  Called on the acceptor's thread, again and again while that is
 * so. */
typedef void acceptor_full(void *data);

/* Embedded in the caller's struct, because connections come and go before acceptor_start() has
 * returned.  All zero before acceptor_start().  The fields are private. */
struct acceptor {
    int listen_fd, wake_fd;
    acceptor_hand *hand;
    acceptor_full *full;
    void *data;
    pthread_t thread;
    bool running; /* only the owner's thread looks at this */
    atomic_bool stopping;
    _Atomic int64_t room; /* so many connections may still be taken */
};

/* Take connections from @listen_fd, at most @room at once.  @listen_fd must not block, and stays
 * the caller's.  False: no more descriptors or threads. */
bool acceptor_start(struct acceptor *acceptor, int listen_fd, unsigned room, acceptor_hand *hand,
    acceptor_full *full, void *data) MUST_CHECK;

/* A connection that was handed over has ended: there is room for another. */
void acceptor_left(struct acceptor *acceptor);

/* Take no more connections.  When this returns, the thread has ended.  An acceptor that was never
 * started is fine. */
void acceptor_quiesce(struct acceptor *acceptor);

/* Quiesce and release; acceptor_left() must not be called any more. */
void acceptor_stop(struct acceptor *acceptor);

#endif
