/* lanes.h - a batch is counted in all partitions, on several threads.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * A lane is a connection over which a fold counts, one transaction after the other, with a thread
 * for as long as the batch lasts.
 *
 * One server carries out one transaction at a time, and a thread has much to compute before the
 * next one.  So the partitions of a large batch are shared out to two lanes: while Redis carries
 * out the transaction of one, the other one computes.
 *
 * In a cluster an EXEC takes the keys of one slot.  So each transaction counts one partition, and
 * each server has one lane, which counts the server's partitions.
 *
 * There a log's head lies on another server as a rule, so it cannot be read behind the WATCH.  The
 * heads that the round has read stand for it while they are young: a cursor is deleted no earlier
 * than LOG_CURSOR_KEPT_MS after its log's head (log/close.h).  So, by heads of at most HEADS_AGE_MS
 * when the WATCH is answered, each cursor of a log with a head is still there, or its deletion
 * makes the EXEC void.
 */
#ifndef STORAGE_FOLD_LANES_H
#define STORAGE_FOLD_LANES_H

#include "storage/fold/transaction.h"

#define FOLD_STEP_MS    5000 /* no step takes so long on a Redis that lives */
#define FOLD_CONNECT_MS 1000
#define FOLD_SILENCE_MS 3000 /* a connection is taken for dead that is silent for so long */

struct lane;

struct lanes {
    struct core *core;
    struct seen_fold *seen_fold;
    struct shared_memory *shared;
    struct lane *all; /* owned; with one server two of them */
    /* Called when a transaction was done, with one server by any of the threads; in a cluster, by
     * the caller of lanes_count(), when a whole batch was.  NULL: nobody is. */
    void (*moved)(void *data);
    void *moved_data;
};

/* False: out of memory; the caller releases all the same. */
bool lanes_init(struct lanes *lanes, struct core *core, struct seen_fold *seen_fold,
    struct shared_memory *shared) MUST_CHECK;

/* The connection to the one server is closed: nothing is known any more. */
void lanes_forget(struct lanes *lanes);
void lanes_release(struct lanes *lanes);

/* Count @batch.  @session leads to the one server, or has the dispatcher of a cluster.  @heads are
 * as those of transaction_run().  @trim: of one server: the log in the batch that is cut when all
 * is counted; -1: none.  After any end but FOLD_DONE some partitions may have counted the batch. */
struct fold_result lanes_count(struct lanes *lanes, struct session *session,
    const struct batch *batch, struct heads *heads, int trim) MUST_CHECK;

#endif
