/* pass_by.h - partitions of a cluster that get nothing of a batch: only their cursors move.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * An entry is counted once the cursors of all partitions are behind it, and most partitions get
 * nothing of a small batch.  With one server they share a transaction.  In a cluster a transaction
 * for each would cost a round trip each.  A script compares and sets a partition's cursors
 * (lua/cursors.lua), and the scripts of all partitions go out together.
 */
#ifndef STORAGE_FOLD_PASS_BY_H
#define STORAGE_FOLD_PASS_BY_H

#include "storage/core/asks.h"
#include "storage/fold/transaction.h"

/* Move the cursors of @batch in all partitions that get nothing of it, by @heads, over the
 * dispatcher of @session, until @deadline_ms. */
struct fold_result pass_by(struct core *core, struct session *session, const struct batch *batch,
    const struct heads *heads, int64_t deadline_ms) MUST_CHECK;

#endif
