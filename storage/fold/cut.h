/* cut.h - cuts a batch into transactions that hold Redis for some milliseconds only.
 *
 * Layer: storage, pure.  Belongs to the fold's thread.
 *
 * Redis does nothing else while it carries out a transaction.  So a transaction gets as many
 * partitions as fit by an estimate, and a partition with too much for one transaction is cut:
 * behind an entry, or, where the part of one entry is too large, behind an event.
 */
#ifndef STORAGE_FOLD_CUT_H
#define STORAGE_FOLD_CUT_H

#include <stdatomic.h>

#include "storage/fold/batch.h"
#include "storage/time/write_plan.h"

/* Partitions of one transaction, at most.  WATCH compares each key with all that are watched
 * already; and a share's memory is kept for each. */
#define CUTS_MAX 64

/* Tasks [from, to) of a partition.  All rows below to_row are counted there afterwards. */
struct cut {
    unsigned partition;
    uint32_t from, to;
    uint32_t to_row;
    uint32_t us; /* what it is estimated to cost Redis */
};

/* How far a batch has come.  Two cutters may share the partitions, one from each end, until none is
 * left: each on its own thread. */
struct cutter {
    struct core *core;
    const struct batch *batch;
    _Atomic unsigned *left; /* partitions that no cutter has taken */
    int step;               /* to the next one: 1, or -1 from the end on */
    bool is_done;
    unsigned partition; /* the first one that is not done.. */
    uint32_t task;      /* ..and its first task that is not done */
};

/* @left is the number of partitions, when the first cutter begins.  @from_end: from the last one
 * on. */
void cutter_begin(struct cutter *cutter, struct core *core, const struct batch *batch,
    _Atomic unsigned *left, bool from_end);

/* Take the next transaction, of at most about @limit_us: ret[0 .. result).  0: all is done.
 * *ret_last: nothing comes behind it. */
unsigned cutter_next(
    struct cutter *cutter, uint32_t limit_us, struct cut ret[CUTS_MAX], bool *ret_last);

#endif
