#include "storage/fold/pace.h"

/* Small ones say more of what a transaction costs by itself than of what is in it. */
#define TELLING_US 500
/* Of the sums, this part is forgotten with each transaction: about the last 16 count. */
#define FORGET 16
/* One that was interrupted says nothing about its content beyond this. */
#define SLOWEST 8

void pace_learn(struct pace *pace, uint64_t estimated_us, int64_t measured_us)
{
    if (estimated_us < TELLING_US || measured_us <= 0) {
        return;
    }
    uint64_t measured = (uint64_t)measured_us;
    if (measured > SLOWEST * estimated_us) {
        measured = SLOWEST * estimated_us;
    }
    pace->estimated_us += estimated_us - pace->estimated_us / FORGET;
    pace->measured_us += measured - pace->measured_us / FORGET;
    uint64_t limit = PACE_GOAL_US * pace->estimated_us / (pace->measured_us + 1);
    pace->limit_us = limit < PACE_MIN_US   ? PACE_MIN_US
                     : limit > PACE_MAX_US ? PACE_MAX_US
                                           : (uint32_t)limit;
}

uint32_t pace_limit_us(const struct pace *pace)
{
    return pace->limit_us == 0 ? PACE_START_US : pace->limit_us;
}
