/* watched_logs.h - logs that are to be seen twice alike before they are closed or cleaned up.
 *
 * Layer: storage, pure.  Belongs to one thread.
 */
#ifndef STORAGE_LOG_WATCHED_LOGS_H
#define STORAGE_LOG_WATCHED_LOGS_H

#include "storage/base/compiler.h"
#include "storage/schema/log_state.h"

struct watched_log {
    struct log_head head;
    int64_t since_ms; /* CLOCK_MONOTONIC: it has been seen so */
    bool is_seen;     /* since the last watched_logs_keep().. */
    bool is_old;      /* ..and before it */
};

/* Zeroed it is empty. */
struct watched_logs {
    struct watched_log *all; /* owned */
    size_t n, capacity;
};

void watched_logs_release(struct watched_logs *logs);

/* The log with @head is seen at @now_ms.  NULL: out of memory. */
const struct watched_log *watched_logs_see(
    struct watched_logs *logs, const struct log_head *head, int64_t now_ms);

/* Has it been seen with this head before, and first so @apart_ms ago or earlier? */
static inline bool watched_log_stands(
    const struct watched_log *log, int64_t now_ms, int64_t apart_ms)
{
    return log->is_old && now_ms - log->since_ms >= apart_ms;
}

/* All logs were looked at: those that were not seen are forgotten. */
void watched_logs_keep(struct watched_logs *logs);

#endif
