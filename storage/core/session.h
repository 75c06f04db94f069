/* session.h - a connection to Redis on which the scripts are loaded.
 *
 * Layer: storage.  Not thread-safe: a session belongs to one thread.
 */
#ifndef STORAGE_CORE_SESSION_H
#define STORAGE_CORE_SESSION_H

#include "storage/core/server.h"
#include "storage/redis/script.h"

struct dispatcher;

struct session {
    struct redis *redis;    /* NULL: not connected */
    struct redis_look look; /* set by the thread, for its next connection; zeroed: none */
    bool is_writers;        /* set by a writer, which tells itself why it cannot connect */
    struct server server;   /* where it leads; its partition is set by the thread */
    struct core *core;      /* once it was connected */
    /* Where several servers share the partitions: connections to all of them, the thread's own; set
     * by the thread.  NULL: one server has all. */
    struct dispatcher *dispatcher;
    struct script_digests scripts;
    uint64_t n_opened; /* connections so far: tells one from the next */
    int64_t opened_us; /* CLOCK_MONOTONIC: the connection stood then */
    char why[400];     /* it could not be opened, or prepared (prepare.h), the last time */
};

/* Connect to the server of the session's partition, and load the scripts by @deadline_ms
 * (CLOCK_MONOTONIC).  The session is not connected before.  Waits on the connection end with
 * REDIS_LOST as soon as another server has the partition; so @session stays at its place.  False:
 * session->why, and the session stays unconnected; the caller of storage is told where a writer is
 * connected, and this one is not. */
bool session_open(struct session *session, struct core *core, int64_t deadline_ms) MUST_CHECK;

/* The session is never opened itself: its dispatcher connects.  Make the scripts known to it.
 * False: no thread has been connected yet. */
bool session_by_dispatcher(struct session *session, struct core *core) MUST_CHECK;

/* Connected, and to the server that has the partition now? */
static inline bool session_is_current(struct session *session)
{
    return session->redis != NULL && server_is_current(session->core, &session->server);
}

void session_close(struct session *session); /* harmless if it is not connected */

/* Close it if its server has closed it while it was idle, so that nothing is sent there in vain. */
void session_close_if_dead(struct session *session);

/* Close it because it failed: what it leads to is looked at.  What was queued and not sent never
 * is.  Harmless if it is not connected. */
void session_lost(struct session *session);

#endif
