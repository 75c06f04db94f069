/* pace.h - how fast this Redis is, beside what transactions were estimated to cost.
 *
 * Layer: storage, pure.  One owner.
 *
 * Transactions are cut by a constant for each kind of task (cut.c).  What a task takes depends on
 * its names, on what comes together, and on the machine.  So each transaction says how long it
 * took, and the cut follows: the limit on the estimate is a goal divided by what a microsecond of
 * estimate took lately.
 *
 * Requests are acknowledged between transactions.  Requests of few events come in great numbers,
 * and whoever comes during a transaction waits for its end: there the goal is a short one.  With 64
 * senders of single events the p99 fell from 7.7 to 3.9 ms, and they sent more.  With arrays of
 * 1,000 events short transactions cost 10 of 100 events: each has a cost of its own.
 */
#ifndef STORAGE_FOLD_PACE_H
#define STORAGE_FOLD_PACE_H

#include <stdint.h>

/* A transaction holds Redis for about so long: 30 % of the 5 ms allowed, for some take longer
 * than their kind does. */
#define PACE_GOAL_US 1500
/* .. or so long, where many requests come meanwhile. */
#define PACE_GOAL_SHORT_US 550

/* The limit is the goal times a factor, which stays within these (percent): what is cheap now may
 * be followed by what is not, and a transaction has a cost of its own that small ones pay too
 * often. */
#define PACE_MIN 25
#define PACE_MAX 250

/* Zeroed: nothing is known, and the estimate is trusted. */
struct pace {
    uint32_t percent;                   /* 0: nothing known */
    uint64_t estimated_us, measured_us; /* sums that forget */
};

/* A transaction that was estimated at @estimated_us took @measured_us; 0: its Redis did not say. */
void pace_learn(struct pace *pace, uint64_t estimated_us, int64_t measured_us);

/* What a transaction may be estimated to cost at most, with this goal. */
uint32_t pace_limit_us(const struct pace *pace, uint32_t goal_us);

#endif
