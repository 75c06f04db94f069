/* pace.h - how fast this Redis is, beside what tasks were estimated to cost.
 *
 * Layer: storage, pure.  One owner.
 *
 * Transactions are cut by a constant for each kind of task (cut.c).  What a task takes depends on
 * its names, on what comes together, and on the machine.  So each transaction says how long it
 * took, and the cut follows: a kind costs what its constants took lately.
 *
 * Each kind has a pace of its own, because the kinds differ and do not come mixed: the tasks of a
 * partition are sorted, so most transactions have one kind.  Where each event has a new visitor, a
 * visit takes twice its constant, and a site's sketch a tenth.  By one pace for all, 8 of 1,000
 * transactions took more than 5 ms there, and up to 14; by one for each kind 4 of 10,000 do.
 *
 * A minute begins with empty sketches.  While a sketch has few visitors Redis keeps it sparse, and
 * adding takes several times as long as later.  So the pace forgets what it knows of sketches when
 * a minute begins.
 *
 * Requests are acknowledged between transactions.  Requests of few events come in great numbers,
 * and one that comes during a transaction waits for the end: there the goal is a short one.  With
 * 64 senders of single events the p99 fell from 7.7 to 3.9 ms, and they sent more.  With arrays of
 * 1,000 events short transactions cost 10 of 100 events: each has a cost of its own.
 */
#ifndef STORAGE_FOLD_PACE_H
#define STORAGE_FOLD_PACE_H

#include <stdint.h>

#include "storage/fold/batch_tasks.h"

/* A transaction is to hold Redis for about so long: 30 % of the 5 ms allowed, because some take
 * longer than others of their kind. */
#define PACE_GOAL_US 1500
/* A transaction is to hold Redis for about so long where many requests come meanwhile. */
#define PACE_GOAL_SHORT_US 550

/* A kind costs from PACE_LEAST to PACE_MOST percent of its constants.  Less would be too little
 * when tasks of the kind become expensive.  More would be waste: a transaction has a cost of its
 * own, which small ones pay too often. */
#define PACE_LEAST 40
#define PACE_MOST  400

/* What a transaction does: tasks, by enum task_kind, and states of partitions. */
#define WORK_STATE (TASK_USER + 1)
#define WORK_KINDS (WORK_STATE + 1)

struct work {
    uint32_t tenths[WORK_KINDS]; /* by the constants, tenths of a microsecond */
    int64_t newest_s;            /* the latest time, UTC, of an event */
};

/* Add what @more has to @work. */
void work_add(struct work *work, const struct work *more);

/* Zeroed: nothing is known, and the constants are trusted. */
struct pace {
    struct pace_kind {
        uint32_t percent;                 /* of the constants; 0: nothing is known */
        double estimated_us, measured_us; /* sums of lately */
    } kinds[WORK_KINDS];
    int64_t end_s; /* the end, UTC, of the newest minute that transactions had */
};

/* What a task of @kind for an event at @at_s costs, in percent of its constant. */
static inline uint32_t pace_percent(const struct pace *pace, unsigned kind, int64_t at_s)
{
    uint32_t percent = pace->kinds[kind].percent;
    return percent == 0 || (percent < 100 && kind <= TASK_SITE && at_s >= pace->end_s) ? 100
                                                                                       : percent;
}

/* A transaction with @work took @measured_us; 0: Redis did not say.  @now_s: Redis's clock, UTC. */
void pace_learn(struct pace *pace, const struct work *work, int64_t measured_us, int64_t now_s);

#endif
