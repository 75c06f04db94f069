#include "storage/fold/pace.h"

/* Small scripts say more of what a script costs by itself than of what is in it. */
#define TELLING_US 500
/* Of the sums, this part is forgotten with each script: about the last 16 count. */
#define FORGET 16
/* A script that was interrupted says nothing about its content beyond this. */
#define SLOWEST 8

/* Arguments that become Lua strings in a microsecond: SLOWLOG's time less the script's own, for
 * scripts of 1 MB (1.4 to 2.5 ms). */
#define BYTES_PER_US 400

void pace_learn(struct pace *pace, uint64_t estimated_us, size_t bytes, int64_t measured_us)
{
    if (estimated_us < TELLING_US || measured_us <= 0) {
        return;
    }
    uint64_t measured = (uint64_t)measured_us + bytes / BYTES_PER_US;
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
