/* close.h - close the logs of writers that are gone.
 *
 * Layer: storage.  Belongs to the rollup's thread, while this process leads.
 * Source: the log's protocol (storage/log/PROTOCOL.md, "Register, close").
 *
 * A writer that ends, or dies, leaves its log behind.  A log whose writer was not heard of for
 * LOG_SILENCE_MS is closed, over one connection:
 *
 *     count     everything in the log is counted in all partitions (read/log_progress.h)
 *     close     the head and the stream are deleted if the head is still the same (close_log.lua)
 *     clean     a cursor that was seen twice without a head, as far apart as Redis can go back, is
 *               deleted in all partitions
 *
 * The order matters.  A log with a head and without its cursors would be counted again.
 *
 * In a cluster heads and cursors lie on servers that may go back one without the other.  So a log
 * must be seen counted twice, as far apart as a server can go back.  A cursor must have been seen
 * without a head LOG_CURSOR_KEPT_MS ago, too, because folds rest on heads of a bounded age
 * (fold/lanes.h).
 *
 * A process that ends closes its own logs, and leaves the cursors to a leader.
 *
 * A writer whose log was closed while it slept finds out with its next append (GONE), and begins a
 * new log.
 */
#ifndef STORAGE_LOG_CLOSE_H
#define STORAGE_LOG_CLOSE_H

#include "storage/log/unfolded.h"
#include "storage/read/log_progress.h"
#include "storage/session/dispatcher.h"

#define LOG_SILENCE_MS     30000 /* a log is closed if its writer was not heard of for so long */
#define LOG_CURSOR_KEPT_MS 30000 /* in a cluster a cursor outlives its log's head by so much */

/* A log that must be seen twice in the same state.  Instants are CLOCK_MONOTONIC. */
struct watched_log {
    struct log_head head;
    int64_t since_ms; /* when the log was seen in this state first */
    int64_t seen_ms;  /* when the last look began that has seen the log in this state */
};

struct watched_logs {
    struct watched_log *all; /* owned */
    size_t n, capacity;
};

/* Zeroed at first. */
struct log_closer {
    struct log_progress progress;
    struct watched_logs strays; /* logs that have cursors and no head */
    int64_t stood_us;           /* session_stands_since() when `strays` and `counted` were seen */
    int64_t next_count_ms;      /* folds are not asked earlier to count more; CLOCK_MONOTONIC */

    /* In a cluster. */
    struct dispatcher dispatcher;
    struct session session;      /* session.dispatcher is NULL before the first look */
    struct watched_logs counted; /* silent logs of which all is counted */
};

void log_closer_release(struct log_closer *closer);

/* Close the silent logs, and delete cursors of logs that were closed; waits for Redis until
 * @deadline_ms (CLOCK_MONOTONIC), and then up to 2 s for folds.  A log of which something is not
 * counted yet is closed at a later call.  @session is connected; a cluster does not use it, and it
 * may be NULL there.  False: @session must be closed. */
bool log_close_silent(struct log_closer *closer, struct core *core, struct session *session,
    int64_t deadline_ms) MUST_CHECK;

/* The process ends: close its own logs, which are those in @unfolded, over new connections, if
 * everything in them is counted.  Their writers have stopped.  In a cluster replicas must have what
 * was counted, on all servers: as many as --ack-replicas says, and one at least.  Other logs and
 * the cursors are left to a leader.  Waits until @deadline_ms (CLOCK_MONOTONIC). */
void log_close_own(struct core *core, struct unfolded *unfolded, int64_t deadline_ms);

#endif
