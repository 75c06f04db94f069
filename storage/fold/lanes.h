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
 * In a cluster a log's head lies on another server as a rule, so no transaction can read the head
 * behind its WATCH.  Instead a transaction rests on the heads that the round has read, while they
 * are young: a cursor is deleted no earlier than LOG_CURSOR_KEPT_MS after its log's head
 * (log/close.h).  So if the heads are at most HEADS_AGE_MS old when the WATCH is answered, each
 * cursor of a log with a head is still there, or its deletion makes the EXEC void.
 */
#ifndef STORAGE_FOLD_LANES_H
#define STORAGE_FOLD_LANES_H

#include "storage/fold/transaction.h"

#define FOLD_STEP_MS    5000 /* a step of a fold takes less on a Redis that lives */
#define FOLD_CONNECT_MS 1000 /* an attempt to connect may take so long */
#define FOLD_SILENCE_MS 3000 /* a connection that is silent for so long is taken for dead */

struct lane;

struct lanes {
    struct core *core;
    struct seen_fold *seen_fold;
    struct shared_memory *shared;
    struct lane *all; /* owned list; two lanes with one server, a lane for each of a cluster's */
    /* Says that folds get on.  With one server any lane's thread calls this behind a transaction,
     * in a cluster the caller of lanes_count() behind a batch.  NULL: nobody is told. */
    void (*moved)(void *data);
    void *moved_data;
};

/* @core, @shared and @seen_fold, which may be NULL, outlive the lanes.  False: out of memory; the
 * caller releases @lanes all the same. */
bool lanes_init(struct lanes *lanes, struct core *core, struct seen_fold *seen_fold,
    struct shared_memory *shared) MUST_CHECK;

/* The connection to the one server is closed: close those of the lanes, and forget what the lanes
 * know of the data.  In a cluster each lane looks after its own connection. */
void lanes_forget(struct lanes *lanes);
void lanes_release(struct lanes *lanes);

/* Count @batch in all partitions; waits for Redis.  @session leads to the one server, or has the
 * dispatcher of a cluster.  @heads are those of transaction_run().  @trim: with one server, the
 * number of the log in the batch whose stream is cut when all is counted; -1: none.  After any end
 * but FOLD_DONE some partitions may have counted the batch. */
struct fold_result lanes_count(struct lanes *lanes, struct session *session,
    const struct batch *batch, struct heads *heads, int trim) MUST_CHECK;

#endif
