/* close.h - close the logs of writers that are gone.
 *
 * Layer: storage.  Belongs to the rollup's thread, while this process leads.
 * Source: the log's protocol (storage/log/PROTOCOL.md, "Register, close").
 *
 * A writer that ends, or dies, leaves its log behind.  A log whose writer was not heard of for
 * LOG_SILENCE_MS is closed, over one connection:
 *
 *     count     everything in the log is counted in all partitions (core/log_progress.h)
 *     close     its head is still the same: the head and the stream are deleted (close_log.lua)
 *     clean     a cursor that was seen twice without a head, as far apart as Redis can go back, is
 *               deleted in all partitions
 *
 * The order matters.  A log with a head and without its cursors would be counted again.
 *
 * In a cluster heads and cursors lie on servers that may go back one without the other.  So a log
 * must be seen counted twice, as far apart as a server can go back; and a cursor without a head
 * must have been so LOG_CURSOR_KEPT_MS ago, too: folds rest on heads of a bounded age
 * (fold/lanes.h).
 *
 * A process that ends closes its own logs, and leaves the cursors to a leader.
 *
 * A writer whose log was closed while it slept finds out with its next append (GONE), and begins a
 * new log.
 */
#ifndef STORAGE_LOG_CLOSE_H
#define STORAGE_LOG_CLOSE_H

#include "storage/core/dispatcher.h"
#include "storage/core/log_progress.h"
#include "storage/log/unfolded.h"

#define LOG_SILENCE_MS     30000
#define LOG_CURSOR_KEPT_MS 30000 /* in a cluster, behind the head */

/* A log that is to be seen twice alike. */
struct watched_log {
    struct log_head head;
    int64_t since_ms; /* CLOCK_MONOTONIC: it has been seen so.. */
    int64_t seen_ms;  /* ..and in the look that began then, too */
};

struct watched_logs {
    struct watched_log *all; /* owned */
    size_t n, capacity;
};

/* Zeroed at first. */
struct log_closer {
    struct log_progress progress;
    struct watched_logs strays; /* cursors without a head */
    int64_t stood_us;           /* session_stands_since() when they were seen, and `counted` */
    int64_t next_count_ms;

    /* Of a cluster. */
    struct dispatcher dispatcher;
    struct session session;      /* of the dispatcher; its core is NULL: not begun */
    struct watched_logs counted; /* silent ones */
};

void log_closer_release(struct log_closer *closer);

/* Close what there is to close, by @deadline_ms.  A log of which something is not counted yet is
 * closed at a later call.  @session is connected; in a cluster it is of no use, and may
 * be NULL.  False: it must be closed. */
bool log_close_silent(struct log_closer *closer, struct core *core, struct session *session,
    int64_t deadline_ms) MUST_CHECK;

/* The process ends: close its own logs, those in @unfolded, over connections of its own, if
 * everything in them is counted.  Their writers have stopped.  In a cluster replicas must have what
 * was counted, on all servers: as many as --ack-replicas says, and one at least.  What is left, and
 * the cursors, is for the leader of another process, or a later one. */
void log_close_own(struct core *core, struct unfolded *unfolded, int64_t deadline_ms);

#endif
