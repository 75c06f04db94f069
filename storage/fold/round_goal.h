/* round_goal.h - what a round of folding has to reach, and what is gathered for it.
 *
 * Layer: storage, private to the round.  Belongs to the fold's thread.
 */
#ifndef STORAGE_FOLD_ROUND_GOAL_H
#define STORAGE_FOLD_ROUND_GOAL_H

#include "storage/fold/round_state.h"

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

#endif
