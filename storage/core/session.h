/* session.h - a connection to Redis on which the scripts are loaded.
 *
 * Layer: storage.  A session belongs to one thread.
 */
#ifndef STORAGE_CORE_SESSION_H
#define STORAGE_CORE_SESSION_H

#include "storage/core/core.h"
#include "storage/redis/script.h"

struct session {
    struct redis *redis;    /* NULL: not connected */
    struct redis_look look; /* its owner's, for the next connection; 0: none */
    struct script_digests scripts;
};

/* Connect and load the scripts.  On failure returns false, and @error says why. */
bool session_open(
    struct session *session, struct core *core, int64_t deadline_ms, char *error, size_t error_n);
void session_close(struct session *session);

#endif
