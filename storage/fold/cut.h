/* cut.h - cuts a batch into transactions that hold Redis for some milliseconds only.
 *
 * Layer: storage, pure.  Belongs to the thread of a lane (lanes.h).
 *
 * Redis does nothing else while it carries out a transaction.  So a transaction gets as many
 * partitions as fit by what tasks took lately (pace.h), and a partition with too much for one
 * transaction is cut: between two stripes of tasks (batch_tasks.h), or, where one stripe is too
 * large, behind an entry, or behind an event.
 */
#ifndef STORAGE_FOLD_CUT_H
#define STORAGE_FOLD_CUT_H

#include <stdatomic.h>

#include "storage/fold/batch.h"
#include "storage/fold/pace.h"
#include "storage/time/write_plan.h"

/* Partitions of one transaction, at most.  WATCH compares each key with all that are watched
 * already; and a share's memory is kept for each. */
#define CUTS_MAX 64

/* Tasks [from, to) of a partition.  Afterwards its stripes [first_stripe, end_stripe) are counted
 * to the end of the batch, and of stripe end_stripe all rows below to_row (0: nothing more). */
struct cut {
    unsigned partition;
    uint32_t from, to;
    uint8_t first_stripe, end_stripe;
    uint32_t to_row;
    uint32_t us; /* Redis is expected to take so long for the cut */
    struct work work;
};

/* Cuts of one batch that one transaction counts.  The caller keeps the array until then. */
struct fold_cuts {
    const struct cut *cuts;
    unsigned n;
};

/* Partitions of a batch that no cutter has taken yet; zeroed there are none.  Thread-safe. */
struct cut_left {
    _Atomic bool has[PARTITIONS_MAX];
};

/* How far a lane has cut the partitions of a batch. */
struct cutter {
    struct core *core;
    const struct batch *batch;
    struct cut_left *left;
    unsigned partition;   /* the partition at hand; the number of partitions: none is left */
    uint32_t task;        /* the first task of the partition that is in no cut */
    uint8_t first_stripe; /* the first stripe of the partition that no cut has to its end */
};

/* Put all partitions of @core into @left. */
void cut_all_left(struct cut_left *left, const struct core *core);

/* Begin to cut the partitions in @left, from @first on and around, and take the first one out of
 * @left.  Several cutters, each on its own thread, may share @left. */
void cutter_begin(struct cutter *cutter, struct core *core, const struct batch *batch,
    struct cut_left *left, unsigned first);

/* The partition at which the first of several cutters begins: one that has far more tasks than
 * others, as that of a busy site.  It takes several transactions, one after the other.  Begun late,
 * they would go on alone when all others are done.  Where there is none, partition 0: then each
 * thread meets the partitions again that it knows. */
unsigned cut_first(const struct batch *batch, unsigned n_partitions);

/* Make the cuts of the next transaction, which by @pace holds Redis for about @limit_us at most.
 * Returns how many they are: in a cluster one, and 0 when all is cut.  *ret_last: no further
 * transaction comes. */
unsigned cutter_next(struct cutter *cutter, const struct pace *pace, uint32_t limit_us,
    struct cut ret[CUTS_MAX], bool *ret_last);

#endif
