#include "storage/job/limit.h"

#include <stddef.h>

/* Scripts compute with doubles, in which whole numbers up to 2^53 are exact.  Only a quarter of
 * that is used, so that the quotient of two numbers is never rounded to the next whole number. */
#define UNITS_MAX (INT64_C(1) << 51)

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void limit_units(const struct limit *limit, int64_t *ret_cost, int64_t *ret_rate)
{
    int64_t divisor = common_divisor(limit->period_us, limit->count);
    *ret_cost = limit->period_us / divisor;
    *ret_rate = limit->count / divisor;
}

const char *limit_check(const struct limit *limit, enum limit_part *ret_part)
{
    int64_t cost, rate;
    *ret_part = LIMIT_PART_COUNT;
    if (limit->count < 1 || limit->count > LIMIT_COUNT_MAX) {
        return "must be from 1 to 1000000000";
    }
    if (limit->algorithm == LIMIT_SLIDING && limit->count > LIMIT_SLIDING_MAX) {
        return "must be from 1 to 10000 for a sliding window, which remembers each one";
    }
    *ret_part = LIMIT_PART_PERIOD;
    if (limit->period_us < LIMIT_PERIOD_MIN_US || limit->period_us > LIMIT_PERIOD_MAX_US) {
        return "must be from 0.001 to 31622400 seconds";
    }
    *ret_part = LIMIT_PART_BURST;
    if (limit->burst < 0 || limit->burst > LIMIT_BURST_MAX) {
        return "must be from 0 to 1000000000";
    }
    limit_units(limit, &cost, &rate);
    if (limit->algorithm == LIMIT_FUNNEL && limit->burst + 1 > UNITS_MAX / cost) {
        return "is too large for this limit and period to be counted exactly";
    }
    return NULL;
}

const char *limit_penalty_check(const struct limit_penalty *penalty)
{
    if (penalty->refusals < 1 || penalty->refusals > LIMIT_REFUSALS_MAX) {
        return "the refusals must be from 1 to 100";
    }
    if (penalty->within_us < LIMIT_PERIOD_MIN_US || penalty->within_us > LIMIT_PERIOD_MAX_US ||
        penalty->lasts_us < LIMIT_PERIOD_MIN_US || penalty->lasts_us > LIMIT_PERIOD_MAX_US) {
        return "the times of a penalty must be from 1ms to 366d";
    }
    return NULL;
}

int64_t limit_capacity(const struct limit *limit)
{
    return limit->algorithm == LIMIT_FUNNEL ? limit->burst + 1 : limit->count;
}

int64_t limit_window_us(const struct limit *limit)
{
    int64_t cost, rate;
    if (limit->algorithm == LIMIT_SLIDING) {
        return limit->period_us;
    }
    limit_units(limit, &cost, &rate);
    return ((limit->burst + 1) * cost + rate - 1) / rate;
}

const struct limit *limit_job_strictest(const struct limit_job *job)
{
    return job->set == NULL ? &job->limit : &job->set->limits[job->state.strictest];
}

int64_t limit_seconds(int64_t us)
{
    return us <= 0 ? (us < 0 ? -1 : 0) : (us + 999999) / 1000000;
}
