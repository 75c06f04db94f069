/* counted_logs.h - silent logs of a cluster, and since when each has been seen counted.
 *
 * Layer: storage, pure.  Belongs to one thread.
 *
 * In a cluster a log is closed when it has been seen counted, with the same head, for as long as a
 * server can go back: see close.h.
 */
#ifndef STORAGE_LOG_COUNTED_LOGS_H
#define STORAGE_LOG_COUNTED_LOGS_H

#include "storage/base/compiler.h"
#include "storage/schema/log_state.h"

struct counted_log {
    struct log_head head;
    int64_t seen_ms; /* CLOCK_MONOTONIC: for the first time */
    bool is_seen;    /* this time */
};

/* Zeroed it is empty. */
struct counted_logs {
    struct counted_log *all; /* owned */
    size_t n, capacity;
};

void counted_logs_release(struct counted_logs *logs);

/* The log with @head is counted at @now_ms.  Has it been, with this head, since @apart_ms ago?
 * Without memory it has not. */
bool counted_logs_long(struct counted_logs *logs, const struct log_head *head, int64_t now_ms,
    int64_t apart_ms) MUST_CHECK;

/* All logs were looked at: those that were not told as counted since the last time are
 * forgotten. */
void counted_logs_keep(struct counted_logs *logs);

#endif
