/* pass_by.h - in a cluster, moves the cursors of partitions that get nothing of a batch.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * An entry is counted once the cursors of all partitions are behind it, and most partitions get
 * nothing of a small batch.  With one server these partitions share a transaction.  In a cluster
 * each would need a transaction of its own, and so a round trip.  Instead a script compares and
 * sets a partition's cursors (lua/cursors.lua), and the scripts of all partitions go out together.
 */
#ifndef STORAGE_FOLD_PASS_BY_H
#define STORAGE_FOLD_PASS_BY_H

#include "storage/fold/transaction.h"
#include "storage/session/asks.h"

/* Move the cursors of @batch in all partitions that get nothing of @batch, for the logs that have
 * heads in @heads.  Waits over the dispatcher of @session until @deadline_ms (CLOCK_MONOTONIC).
 * After any end but FOLD_DONE some cursors may have moved, which does no harm. */
struct fold_result pass_by(struct core *core, struct session *session, const struct batch *batch,
    const struct heads *heads, int64_t deadline_ms) MUST_CHECK;

#endif
