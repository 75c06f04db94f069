/* pace.h - how fast this Redis is, beside what transactions were estimated to cost.
 *
 * Layer: storage, pure.  One owner.
 *
 * Transactions are cut by constants that were measured on one machine (cut.c).  A slower Redis, or
 * one that shares its processor, would be held up longer by the same transaction.  So each of them
 * says how long it took, and the cut follows: the limit on the estimate is PACE_GOAL_US divided by
 * what a microsecond of estimate took lately.
 */
#ifndef STORAGE_FOLD_PACE_H
#define STORAGE_FOLD_PACE_H

#include <stdint.h>

/* A transaction holds Redis for about so long: a third of the 5 ms allowed, for some take longer
 * than their kind does. */
#define PACE_GOAL_US 1800

/* The limit stays within these: what is cheap now may be followed by what is not, and a
 * transaction has a cost of its own that small ones pay too often. */
#define PACE_MIN_US 750
#define PACE_MAX_US 4500

/* Zeroed: nothing is known, the limit is PACE_START_US. */
#define PACE_START_US 1500
struct pace {
    uint32_t limit_us;                  /* 0: nothing known */
    uint64_t estimated_us, measured_us; /* sums that forget */
};

/* A transaction that was estimated at @estimated_us took @measured_us; 0: its Redis did not say. */
void pace_learn(struct pace *pace, uint64_t estimated_us, int64_t measured_us);

/* What a transaction may be estimated to cost at most. */
uint32_t pace_limit_us(const struct pace *pace);

#endif
