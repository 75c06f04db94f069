/* session.h - a connection to Redis on which the scripts are loaded.
 *
 * Layer: storage.  Not thread-safe: a session belongs to one thread.
 */
#ifndef STORAGE_CORE_SESSION_H
#define STORAGE_CORE_SESSION_H

#include "storage/core/core.h"
#include "storage/redis/script.h"

struct session {
    struct redis *redis;    /* NULL: not connected */
    struct redis_look look; /* set by the thread, for its next connection; zeroed: none */
    struct script_digests scripts;
    uint64_t n_opened; /* connections so far: tells one from the next */
    int64_t opened_us; /* CLOCK_MONOTONIC: the connection stood then */
};

/* Connect and load the scripts by @deadline_ms (CLOCK_MONOTONIC).  The session is not connected
 * before.  False: @error, of @error_n bytes, says why, and the session stays unconnected. */
bool session_open(struct session *session, struct core *core, int64_t deadline_ms, char *error,
    size_t error_n) MUST_CHECK;
void session_close(struct session *session); /* harmless if it is not connected */

#endif
