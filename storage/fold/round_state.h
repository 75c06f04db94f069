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
    struct unfolded *unfolded; /* what waits of the process's own logs; not owned */
    struct session session;
    struct shared_memory shared; /* what all transactions know together */
    struct lanes lanes;
    struct dispatcher dispatcher; /* the session's, in a cluster */
    int64_t stood_us; /* in a cluster: `streams` holds while the dispatcher's stood_us is this */
    struct trimmer trimmer; /* in a cluster: cuts the own logs */
    struct streams streams;
    struct heads heads; /* as they were last read */
    struct batch batch;
    size_t events_max; /* a batch takes about so many events of the own logs at most */
};

/* Which logs of other processes are folded. */
enum round_reach {
    ROUND_OWN,      /* none; and of the own logs one batch: a question may have come meanwhile */
    ROUND_FORSAKEN, /* those whose writers were not heard of for longer than an entry waits */
    ROUND_ALL,      /* all of them */
};

/* What a round has to reach. */
struct goal {
    enum round_reach reach;
    struct own_log {
        char id[LOG_ID_TEXT + 1];
        uint64_t last;         /* the last entry that was answered when the round began */
    } own[LOG_PARTITIONS_MAX]; /* the process's own logs, by place */
    unsigned n_own;
    bool counted;       /* the round has counted a batch */
    bool looked;        /* the round has read heads, and goal_set() has kept the first ones */
    struct heads heads; /* the heads that were read first; owned */
};

/* The process's own log @id.  NULL: the log is another process's. */
const struct own_log *goal_own_log(const struct goal *goal, const char *id);

/* The number up to which the log with @head is to be folded in this round; 0: it is out of reach.
 * An own entry that Redis does not have is left out: the writer appends it again. */
uint64_t goal_of(const struct round *round, const struct goal *goal, const struct log_head *head);

/* The heads were read: at the first time in the round keep them as what is to be reached.  False:
 * out of memory. */
bool goal_set(struct round *round, struct goal *goal) MUST_CHECK;

/* Is all folded that the round has to reach?  Entries that a log has lost since are left out: their
 * process appends them again.  *ret_err: why something cannot be folded, or STORAGE_OK. */
bool goal_is_reached(
    struct round *round, const struct goal *goal, enum storage_err *ret_err) MUST_CHECK;

/* May other processes have logs, by the heads that were last read? */
bool goal_has_others(const struct round *round, const struct goal *goal);

/* Put into the batch what memory has of the own logs, without gaps.  False: out of memory. */
bool gather_own(struct round *round, const struct goal *goal) MUST_CHECK;

/* Put into the batch, which has own logs from memory only, a piece of each other log that is behind
 * its goal, as streams_read().  Anything but REDIS_OK_STATUS: the connection must be closed. */
enum redis_status gather_streams(struct round *round, const struct goal *goal) MUST_CHECK;

#endif
