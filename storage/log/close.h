/* close.h - close the logs of writers that are gone.
 *
 * Layer: storage.  Belongs to the rollup's thread, while this process leads.
 * Source: the log's protocol (storage/log/PROTOCOL.md, "Register, close").
 *
 * A writer that ends, or dies, leaves its log behind.  A log whose writer was not heard of for
 * LOG_SILENCE_MS is closed, in this order, over one connection:
 *
 *     count     everything in the log is counted in all partitions (core/log_progress.h)
 *     close     its head is still the same: the head and the stream are deleted (close_log.lua)
 *     clean     its cursors are deleted in all partitions
 *
 * The order matters.  A log with a head and without its cursors would be counted again.  A leader
 * may die between the last two steps; so a cursor that was seen twice without a head, as far apart
 * as Redis can go back, is deleted too.
 *
 * In a cluster heads and cursors lie on servers that may go back one without the other.  So the
 * steps are apart, each proved by connections that have stood since the one before:
 *
 *     count     twice, as far apart as a server can go back
 *     clean     a cursor is deleted once it was seen without a head LOG_CURSOR_KEPT_MS ago, too:
 *               folds rest on heads of a bounded age (fold/lanes.h)
 *
 * A process that ends has no time for that.  It closes its own logs when replicas have acknowledged
 * what all servers have counted (core/replicated.h), and leaves the cursors.
 *
 * A writer whose log was closed while it slept finds out with its next append (GONE), and begins a
 * new log.
 */
#ifndef STORAGE_LOG_CLOSE_H
#define STORAGE_LOG_CLOSE_H

#include "storage/core/dispatcher.h"
#include "storage/core/log_progress.h"
#include "storage/log/unfolded.h"
#include "storage/log/watched_logs.h"

#define LOG_SILENCE_MS     30000
#define LOG_CURSOR_KEPT_MS 30000 /* in a cluster, behind the head */

/* Zeroed at first. */
struct log_closer {
    struct log_progress progress;
    struct watched_logs strays; /* cursors without a head */
    int64_t stood_us;           /* session_stands_since() when they were seen, and `counted` */
    int64_t next_count_ms;
    /* Logs that are closed although their writers were heard of; NULL: none are. */
    struct unfolded *own;

    /* Of a cluster. */
    struct dispatcher dispatcher;
    struct session session;      /* of the dispatcher; its core is NULL: not begun */
    struct watched_logs counted; /* silent ones */
};

void log_closer_release(struct log_closer *closer);

/* Close what there is to close, by @deadline_ms.  A log of which something is not counted yet is
 * closed at a later call.  @session is connected; in a cluster it is of no use, and
 * may be NULL.  False: it must be closed. */
bool log_close_silent(struct log_closer *closer, struct core *core, struct session *session,
    int64_t deadline_ms) MUST_CHECK;

/* The process ends: close its own logs, those in @unfolded, over connections of its own, if
 * everything in them is counted.  Their writers have stopped.  In a cluster replicas must have what
 * was counted, on all servers: as many as --ack-replicas says, and one at least.  What is left the
 * leader of another process, or a later one, closes; also the cursors, in a cluster. */
void log_close_own(struct core *core, struct unfolded *unfolded, int64_t deadline_ms);

#endif
