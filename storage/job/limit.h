/* limit.h - rate limits as values: what is limited, and what a limiter said.
 *
 * Layer: storage, pure.  Thread-safe: no state.  The limiters themselves are scripts on Redis's
 * clock: lua/funnel.lua and lua/sliding.lua.
 *
 * FUNNEL is GCRA (ITU-T I.371, "virtual scheduling"), with the semantics of redis-cell's
 * CL.THROTTLE: burst + 1 can pass at once, then count per period.  Kept as a debt that is paid back
 * in units of 1/count of a microsecond, so that any rate is exact: a request costs period units,
 * and count units a microsecond are paid back (both over their greatest common divisor).
 * SLIDING is an exact log: at most count in any period.
 */
#ifndef STORAGE_JOB_LIMIT_H
#define STORAGE_JOB_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

enum limit_algorithm { LIMIT_FUNNEL, LIMIT_SLIDING };

struct limit {
    enum limit_algorithm algorithm;
    int64_t count;     /* how many.. */
    int64_t period_us; /* ..in this time */
    int64_t burst;     /* funnel: how many more than one at once; sliding: not looked at */
};

#define LIMIT_COUNT_MAX     INT64_C(1000000000)
#define LIMIT_SLIDING_MAX   INT64_C(10000) /* a log of so many entries at most */
#define LIMIT_BURST_MAX     INT64_C(1000000000)
#define LIMIT_PERIOD_MIN_US INT64_C(1000)
#define LIMIT_PERIOD_MAX_US (INT64_C(366) * 86400 * 1000000)
#define LIMIT_COST_MAX      INT64_C(1000000000000)
#define LIMIT_KEY_MAX       256
#define LIMIT_POLICY_MAX    64

enum limit_part { LIMIT_PART_COUNT, LIMIT_PART_PERIOD, LIMIT_PART_BURST };

/* NULL, or what is wrong (static) and with which part. */
const char *limit_check(const struct limit *limit, enum limit_part *ret_part);

/* The most that can pass at once. */
int64_t limit_capacity(const struct limit *limit);

/* Time in which the whole capacity comes back: capacity / rate, rounded up. */
int64_t limit_window_us(const struct limit *limit);

/* Funnel, in units: what one costs, and what a microsecond pays back. */
void limit_units(const struct limit *limit, int64_t *ret_cost, int64_t *ret_rate);

/* What a limiter answered. */
struct limit_state {
    bool allowed;
    int64_t granted;   /* what was taken: at least what was needed, at most what was wanted */
    int64_t remaining; /* could be taken now */
    int64_t retry_us;  /* not allowed: until it could be; -1: never; allowed: 0 */
    int64_t reset_us;  /* until all is as if nothing had been taken */
};

/* Whole seconds, rounded up; -1 stays. */
int64_t limit_seconds(int64_t us);

/* Input and result of STORAGE_LIMIT: take from a limit.  STORAGE_UNKNOWN: it may have been taken.
 */
struct limit_job {
    struct limit limit;       /* passes limit_check */
    struct slice policy;      /* whose keys are its own; empty: of no policy */
    struct slice key;         /* 1..LIMIT_KEY_MAX bytes */
    int64_t need;             /* at least this; 0: only look */
    int64_t want;             /* at most this; a sliding limit takes what is needed */
    bool guard;               /* private to storage: the key is an ingestion guard's */
    struct limit_state state; /* written by storage */
};

/* Input of STORAGE_LIMIT_RESET: forget what was taken for a key, under any algorithm. */
struct limit_reset_job {
    struct slice key;
    const struct slice *policies; /* n_policies of them; the empty one is that of no policy */
    size_t n_policies;
};

#endif
