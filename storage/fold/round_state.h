/* round_state.h - what a round of folding keeps between its steps, and from one round to the next.
 *
 * Layer: storage, private to the round.  Belongs to the fold's thread.
 */
#ifndef STORAGE_FOLD_ROUND_STATE_H
#define STORAGE_FOLD_ROUND_STATE_H

#include "storage/fold/lanes.h"
#include "storage/fold/streams.h"
#include "storage/fold/trim.h"
#include "storage/known/memory.h"
#include "storage/log/unfolded.h"

struct round {
    struct core *core;
    struct unfolded *unfolded; /* the process's own log */
    struct session session;
    struct shared_memory shared; /* of all transactions */
    struct lanes lanes;
    /* Of a cluster: */
    struct dispatcher dispatcher; /* the session's: heads, cursors, streams */
    int64_t stood_us;             /* of the dispatcher: what is known of streams holds since */
    struct trimmer trimmer;
    struct streams streams;
    struct heads heads; /* as last read */
    struct batch batch;
    size_t events_max; /* of this process's log in one batch, about */
};

/* Which logs of other processes are folded. */
enum round_reach {
    ROUND_OWN,      /* none; and of the own log one batch: a question may have come meanwhile */
    ROUND_FORSAKEN, /* those whose last entry waits for longer than its own process lets it */
    ROUND_ALL,
};

#endif
