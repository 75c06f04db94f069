/* transaction.h - counts shares of a batch in Redis: WATCH, read, decide, MULTI .. EXEC.
 *
 * Layer: storage.  Belongs to the thread of a lane (lanes.h).
 *
 * All that a decision rests on is in the states of the partitions, and these are watched: whoever
 * changes a state makes the EXEC void, and the transaction begins again.  Counts and cursors change
 * in one EXEC.  So an event is counted once, whoever folds, and whenever a connection is lost.  A
 * transaction is two round trips as a rule:
 *
 *     WATCH of the states, what the shares ask, MULTI (look.c); the commands of the shares, EXEC
 *
 * Rules (storage/log/PROTOCOL.md, "Fold"; model-checked in tests/model):
 *
 *     a log has no head                        nothing of it counts: the log is closed, or lost
 *     its head is behind the batch             the batch is stale: Redis went back
 *     an entry in memory was answered under    stale: the entry in the stream may be another one
 *     another era than the head's
 *     a position of a cursor that moves is     stale: entries are missing
 *     before the batch's first entry
 *
 * In a cluster a transaction has one partition, and the heads are those that the round has read, at
 * most HEADS_AGE_MS before the WATCH was answered (lanes.h).
 *
 * Entries that were read from the stream hold for as long as the connection lives over which they
 * were read: nobody changes an entry.
 */
#ifndef STORAGE_FOLD_TRANSACTION_H
#define STORAGE_FOLD_TRANSACTION_H

#include "storage/fold/cut.h"
#include "storage/schema/heads.h"
#include "storage/fold/result.h"
#include "storage/session/session.h"

#define HEADS_AGE_MS 10000 /* a transaction of a cluster rests on no older heads */

struct seen_fold;
struct shared_memory;
struct transaction;

/* All transactions of a fold share @shared.  The arguments outlive the transaction; @seen_fold may
 * be NULL.  NULL: out of memory. */
struct transaction *transaction_new(
    struct core *core, struct seen_fold *seen_fold, struct shared_memory *shared) MUST_CHECK;
void transaction_free(struct transaction *tx);

/* Forget what is known of Redis's data: the connection is another one, or the data may have gone
 * back. */
void transaction_forget(struct transaction *tx);

/* What transactions took.  The pace lives as long as @tx. */
const struct pace *transaction_pace(const struct transaction *tx);

/* Count @cuts of @batch over @session, and wait until @deadline_ms (CLOCK_MONOTONIC).  @trim: the
 * number of the log in the batch that all partitions have counted once this is done, so that its
 * stream is cut; -1: none.  @heads are replaced by what is read; in a cluster they are the round's,
 * and stay.  Never ends with FOLD_AGAIN. */
struct fold_result transaction_run(struct transaction *tx, struct session *session,
    const struct batch *batch, struct fold_cuts cuts, int trim, int64_t deadline_ms,
    struct heads *heads) MUST_CHECK;

#endif
