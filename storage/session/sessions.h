/* sessions.h - a thread's connections to all servers that have partitions, one a server.
 *
 * Layer: storage.  Not thread-safe: one owner.
 *
 * One Redis has every partition, and so has a master that Sentinels name: there is one session.
 * With a cluster there is a session for each node of which the thread has needed a partition.  A
 * session is made when it is first needed, and given up when its server has no partition any more.
 */
#ifndef STORAGE_SESSION_SESSIONS_H
#define STORAGE_SESSION_SESSIONS_H

#include "storage/session/session.h"

struct sessions {
    struct core *core;
    struct redis_look look;
    struct sessions_node *nodes; /* owned */
};

/* @look is the thread's, for all its connections.  @core outlives the sessions. */
void sessions_init(struct sessions *sessions, struct core *core, struct redis_look look);
void sessions_release(struct sessions *sessions);

/* The session at the server that has @partition now, connected by @deadline_ms (CLOCK_MONOTONIC).
 * NULL: there is none.  The result is valid until the next call; the session of a server stays at
 * its address as long as the server has partitions.  session->n_opened tells whether the connection
 * is the one of the last call. */
struct session *sessions_get(
    struct sessions *sessions, unsigned partition, int64_t deadline_ms) MUST_CHECK;

#endif
