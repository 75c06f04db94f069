/* session.h - a connection to Redis on which the scripts are loaded.
 *
 * Layer: storage.  Not thread-safe: a session belongs to one thread.
 */
#ifndef STORAGE_SESSION_SESSION_H
#define STORAGE_SESSION_SESSION_H

#include "storage/redis/script.h"
#include "storage/session/server.h"

struct dispatcher;

struct session {
    struct redis *redis;    /* NULL: not connected */
    struct redis_look look; /* set by the thread, for its next connection; zeroed: none */
    bool is_writers;        /* set by a writer: the writer itself tells why it cannot connect */
    struct server server;   /* where the session leads; its partition is set by the thread */
    struct core *core;      /* set by the first connection */
    /* Where several servers share the partitions: the thread's connections to all of them; set and
     * owned by the thread.  NULL: one server has all. */
    struct dispatcher *dispatcher;
    struct script_digests scripts;
    uint64_t n_opened; /* connections so far: tells one from the next */
    int64_t opened_us; /* CLOCK_MONOTONIC: when the connection came to stand */
    char why[400];     /* why opening, or preparing (prepare.h), failed the last time */
};

/* Connect to the server of the session's partition, and load the scripts by @deadline_ms
 * (CLOCK_MONOTONIC).  The session must not be connected.  Waits on the connection end with
 * REDIS_LOST as soon as another server has the partition; for that @session must stay at its
 * address.  False: session->why says why, and the session stays unconnected; the caller of storage
 * is told if a writer is connected all the same. */
bool session_open(struct session *session, struct core *core, int64_t deadline_ms) MUST_CHECK;

/* Make the scripts known to a session that is never opened itself, because its dispatcher connects.
 * False: no thread has been connected yet. */
bool session_by_dispatcher(struct session *session, struct core *core) MUST_CHECK;

/* Is the session connected, and to the server that has the partition now? */
static inline bool session_is_current(struct session *session)
{
    return session->redis != NULL && server_is_current(session->core, &session->server);
}

void session_close(struct session *session); /* harmless if it is not connected */

/* Have the session connected to the server that has the partition now: keep its connection, or give
 * it up and open another one.  Otherwise as session_open(). */
MUST_CHECK static inline bool session_reach(
    struct session *session, struct core *core, int64_t deadline_ms)
{
    if (session_is_current(session)) {
        return true;
    }
    session_close(session);
    return session_open(session, core, deadline_ms);
}

/* Close the session if its server has closed it while it was idle, so that nothing is sent in vain.
 */
void session_close_if_dead(struct session *session);

/* Close the session because its connection failed, and have the topology look at the server.  What
 * was queued and not sent will never be sent.  Harmless if the session is not connected. */
void session_lost(struct session *session);

#endif
