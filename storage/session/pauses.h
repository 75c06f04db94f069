/* pauses.h - how long to wait before a command is tried again that a server did not carry out.
 *
 * Layer: storage.  Thread-safe: no state of its own.
 */
#ifndef STORAGE_SESSION_PAUSES_H
#define STORAGE_SESSION_PAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/redis/redis.h"

/* The pauses of one command.  Zeroed: no pause was made yet. */
struct pauses {
    unsigned redirects; /* since the last pause; the caller counts them */
    int pause_ms;       /* of the last pause: 20, and twice as long each time, up to 200 */
};

/* Make the next pause.  False: the pause would not end before @deadline_ms (CLOCK_MONOTONIC), or
 * @look says that the thread is to wait no more. */
bool pauses_make(
    struct pauses *pauses, const struct redis_look *look, int64_t deadline_ms) MUST_CHECK;

#endif
