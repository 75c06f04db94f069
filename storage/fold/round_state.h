/* round_state.h - what a round of folding keeps between its steps, and from one round to the next.
 *
 * Layer: storage, private to round.c, round_goal.c (what a round has to reach, and the own logs)
 * and gather_streams.c (logs from their streams).  Belongs to the fold's thread.
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

/* What a round has to reach. */
struct goal {
    enum round_reach reach;
    struct own_log {
        char id[LOG_ID_TEXT + 1];
        uint64_t last;         /* the last entry that was answered when the round began */
        bool from_memory;      /* the batch has entries of it from memory */
    } own[LOG_PARTITIONS_MAX]; /* by place */
    unsigned n_own;
    bool counted;       /* a batch */
    bool looked;        /* the heads were read since.. */
    struct heads heads; /* ..and were these; owned */
};

/* The own log of that id.  NULL: it is another process's. */
const struct own_log *goal_own_log(const struct goal *goal, const char *id);

/* How far the log is to be folded: an own entry that Redis does not have yet is appended again. */
uint64_t goal_of(const struct round *round, const struct goal *goal, const struct log_head *head);

/* The heads were read for the first time in the round: this is what is to be reached.  False: out
 * of memory. */
bool goal_set(struct round *round, struct goal *goal) MUST_CHECK;

/* Is all folded that the round has to reach?  What a log lost since, its process appends again.
 * *ret_err: something cannot be folded. */
bool goal_is_reached(
    struct round *round, const struct goal *goal, enum storage_err *ret_err) MUST_CHECK;

/* Are there logs of others, as far as is known? */
bool goal_has_others(const struct round *round, const struct goal *goal);

/* Put into the batch what memory has of the own logs.  False: out of memory. */
bool gather_own(struct round *round, struct goal *goal) MUST_CHECK;

/* Put into the batch a piece of each log that is behind its goal, and is not there from memory. */
enum redis_status gather_streams(struct round *round, const struct goal *goal) MUST_CHECK;

#endif
