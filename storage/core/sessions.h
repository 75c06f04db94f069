/* sessions.h - a thread's connections to all servers that have partitions, one a server.
 *
 * Layer: storage.  Not thread-safe: one owner.
 *
 * One Redis has every partition, and so has a master that Sentinels name: there is one session.  Of
 * a cluster there is a session for each node that the thread has asked for a partition of.  A
 * session is made when it is asked for, and given up when its server has no partition any more.
 */
#ifndef STORAGE_CORE_SESSIONS_H
#define STORAGE_CORE_SESSIONS_H

#include "storage/core/session.h"

struct sessions {
    struct core *core;
    struct redis_look look;
    struct sessions_node *nodes; /* owned */
};

/* @look: of the thread, for its connections. */
void sessions_init(struct sessions *sessions, struct core *core, struct redis_look look);
void sessions_release(struct sessions *sessions);

/* The session at the server that has @partition now, connected by @deadline_ms (CLOCK_MONOTONIC).
 * NULL: there is none.  Valid until the next call; the session of a server stays at its place for
 * as long as the server has partitions.  session->n_opened tells whether it is the connection of
 * before. */
struct session *sessions_get(
    struct sessions *sessions, unsigned partition, int64_t deadline_ms) MUST_CHECK;

#endif
