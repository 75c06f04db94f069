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
 * and one that comes during a transaction waits for the end: there the goal is a short one.  With
 * 64 senders of single events the p99 fell from 7.7 to 3.9 ms, and they sent more.  With arrays of
 * 1,000 events short transactions cost 10 of 100 events: each has a cost of its own.
 */
#ifndef STORAGE_FOLD_PACE_H
#define STORAGE_FOLD_PACE_H

#include <stdint.h>

/* A transaction is to hold Redis for about so long: 30 % of the 5 ms allowed, because some take
 * longer than others of their kind. */
#define PACE_GOAL_US 1500
/* A transaction is to hold Redis for about so long where many requests come meanwhile. */
#define PACE_GOAL_SHORT_US 550

/* The limit is the goal times a factor from PACE_MIN to PACE_MAX percent.  More would be too much
 * when expensive tasks follow cheap ones.  Less would be waste: a transaction has a cost of its
 * own, which small ones pay too often. */
#define PACE_MIN 25
#define PACE_MAX 250

/* Zeroed: nothing is known, and the estimate is trusted. */
struct pace {
    uint32_t percent;                   /* the factor of the limit; 0: nothing is known */
    uint64_t estimated_us, measured_us; /* sums over about the last 16 transactions */
};

/* A transaction that was estimated at @estimated_us took @measured_us; 0: Redis did not say. */
void pace_learn(struct pace *pace, uint64_t estimated_us, int64_t measured_us);

/* The estimate, us, that a transaction may have at most, if it is to hold Redis for @goal_us. */
uint32_t pace_limit_us(const struct pace *pace, uint32_t goal_us);

#endif
