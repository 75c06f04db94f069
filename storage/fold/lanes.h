/* lanes.h - a batch is counted on all servers of a cluster at once.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * An EXEC takes the keys of one slot.  So each transaction counts one partition, and the partitions
 * of one server are counted one after the other over one connection: that is a lane.  The lanes run
 * at the same time, each on a thread for as long as the batch lasts.
 *
 * A log's head lies on another server as a rule, so it cannot be read behind the WATCH.  The heads
 * that the round has read stand for it while they are young: a cursor is deleted no earlier than
 * LOG_CURSOR_KEPT_MS after its log's head (log/close.h).  So, by heads of at most HEADS_AGE_MS when
 * the WATCH is answered, each cursor of a log with a head is still there, or its deletion makes the
 * EXEC void.
 */
#ifndef STORAGE_FOLD_LANES_H
#define STORAGE_FOLD_LANES_H

#include "storage/fold/transaction.h"
#include "storage/schema/part_set.h"

struct lane;

struct lanes {
    struct core *core;
    struct seen_fold *seen_fold;
    struct shared_memory *shared;
    struct lane *lanes; /* owned; one a server */
};

void lanes_init(struct lanes *lanes, struct core *core, struct seen_fold *seen_fold,
    struct shared_memory *shared);
void lanes_release(struct lanes *lanes);

/* Count @batch in the partitions @set, by @heads, until @deadline_ms.  Ends as transaction_run()
 * does; after any end but FOLD_DONE some partitions may have counted it. */
enum fold_end lanes_count(struct lanes *lanes, const struct batch *batch,
    const struct part_set *set, struct heads *heads, int64_t deadline_ms, uint32_t *ret_log,
    enum storage_err *ret_err) MUST_CHECK;

#endif
