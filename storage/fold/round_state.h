/* round_state.h - what a round of folding keeps between its steps, and from one round to the next.
 *
 * Layer: storage, private to the round.  Belongs to the fold's thread.
 */
#ifndef STORAGE_FOLD_ROUND_STATE_H
#define STORAGE_FOLD_ROUND_STATE_H

#include "storage/fold/cut.h"
#include "storage/fold/lanes.h"
#include "storage/fold/streams.h"
#include "storage/fold/transaction.h"
#include "storage/fold/trim.h"
#include "storage/log/unfolded.h"

/* What folds partitions beside the round's own thread: a connection of its own, and what is known
 * on it. */
struct round_beside {
    struct session session;
    struct transaction *tx;
    struct heads heads;
};

struct round {
    struct core *core;
    struct unfolded *unfolded; /* the process's own log */
    struct session session;
    struct transaction *tx;
    /* Of a cluster, in their place: */
    struct dispatcher dispatcher; /* the session's: heads, cursors, streams */
    int64_t stood_us;             /* of the dispatcher: what is known of streams holds since */
    struct lanes lanes;
    struct trimmer trimmer;
    struct streams streams;
    struct heads heads; /* as last read */
    struct round_beside beside;
    struct batch batch;
    size_t events_max; /* of this process's log in one batch, about */
    void (*moved)(
        void *data); /* called when a transaction was done, on two threads; NULL: nobody */
    void *moved_data;
};

/* Which logs of other processes are folded. */
enum round_reach {
    ROUND_OWN,      /* none; and of the own log one batch: a question may have come meanwhile */
    ROUND_FORSAKEN, /* those whose last entry is some seconds old */
    ROUND_ALL,
};

#endif
