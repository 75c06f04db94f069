#include "storage/fold/pace.h"

/* A smaller transaction says more of what any transaction costs than of what is in it. */
#define TELLING_US 200

/* The pace learns from transactions that were estimated at this or more.  Where the limit is low no
 * transaction has TELLING_US, so half of a short one is enough.  (Partitions share a transaction
 * while they fit, so hardly one but the last is less than half full.) */
static uint32_t telling_us(const struct pace *pace)
{
    uint32_t half = pace_limit_us(pace, PACE_GOAL_SHORT_US) / 2;
    return half < TELLING_US ? half : TELLING_US;
}

/* With each transaction a 16th of the sums is forgotten, so about the last 16 count. */
#define FORGET 16
/* A transaction counts as at most this many times its estimate: one that took longer was
 * interrupted, and its time says nothing of its content. */
#define SLOWEST 8

void pace_learn(struct pace *pace, uint64_t estimated_us, int64_t measured_us)
{
    if (estimated_us < telling_us(pace) || measured_us <= 0) {
        return;
    }
    uint64_t measured = (uint64_t)measured_us;
    if (measured > SLOWEST * estimated_us) {
        measured = SLOWEST * estimated_us;
    }
    pace->estimated_us += estimated_us - pace->estimated_us / FORGET;
    pace->measured_us += measured - pace->measured_us / FORGET;
    uint64_t percent = 100 * pace->estimated_us / (pace->measured_us + 1);
    pace->percent = percent < PACE_MIN   ? PACE_MIN
                    : percent > PACE_MAX ? PACE_MAX
                                         : (uint32_t)percent;
}

uint32_t pace_limit_us(const struct pace *pace, uint32_t goal_us)
{
    return pace->percent == 0 ? goal_us : goal_us * pace->percent / 100;
}
