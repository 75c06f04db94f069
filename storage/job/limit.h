/* limit.h - rate limits as values: what is limited, and what a limiter said.
 *
 * Layer: storage, public: plain values and pure functions.  Thread-safe: no state.
 *
 * A rate limit allows `count` requests in a period.  Redis counts them, in a script, by its own
 * clock, so that all processes share a limit.  There are two algorithms:
 *
 *     LIMIT_FUNNEL    burst + 1 requests can pass at once, and then `count` a period, evenly.
 *                     The algorithm is GCRA (ITU-T I.371, "virtual scheduling"), with the semantics
 *                     of redis-cell's CL.THROTTLE.  Script: lua/funnel.lua
 *     LIMIT_SLIDING   at most `count` requests in any period: an exact log of the last period.
 *                     Script: lua/sliding.lua
 *
 * Several limits can be decided together: all of them are charged, or none.  A penalty can stand
 * beside them: whoever is refused too often is refused for a while.  Script: lua/policy.lua
 *
 * A funnel keeps a debt, in whole units, so that any rate is exact.  A request costs period_us
 * units, and each microsecond pays back `count` units; both are divided by their greatest common
 * divisor.
 */
#ifndef STORAGE_JOB_LIMIT_H
#define STORAGE_JOB_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

enum limit_algorithm { LIMIT_FUNNEL, LIMIT_SLIDING };

struct limit {
    enum limit_algorithm algorithm;
    int64_t count; /* so many requests pass in period_us */
    int64_t period_us;
    int64_t burst; /* funnel: how many more than one can pass at once; sliding: ignored */
};

/* Whoever is refused `refusals` times within a time is refused for a time from then on. */
struct limit_penalty {
    int64_t refusals; /* 0: there is no penalty */
    int64_t within_us;
    int64_t lasts_us;
};

#define LIMIT_SET_MAX 8

/* Limits that are decided together. */
struct limit_set {
    struct limit limits[LIMIT_SET_MAX];
    size_t n; /* at least 1 */
    struct limit_penalty penalty;
};

#define LIMIT_COUNT_MAX     INT64_C(1000000000)
#define LIMIT_SLIDING_MAX   INT64_C(10000) /* count of a sliding limit: entries of its log */
#define LIMIT_BURST_MAX     INT64_C(1000000000)
#define LIMIT_PERIOD_MIN_US INT64_C(1000)
#define LIMIT_PERIOD_MAX_US (INT64_C(366) * 86400 * 1000000)
#define LIMIT_COST_MAX      INT64_C(1000000000000)
#define LIMIT_KEY_MAX       256          /* bytes */
#define LIMIT_POLICY_MAX    64           /* bytes */
#define LIMIT_REFUSALS_MAX  INT64_C(100) /* of a penalty, whose key holds the time of each */

enum limit_part { LIMIT_PART_COUNT, LIMIT_PART_PERIOD, LIMIT_PART_BURST };

/* Is the limit one that can be counted exactly?  NULL: yes.  Else what is wrong, a static text, and
 * with which part of the limit. */
const char *limit_check(const struct limit *limit, enum limit_part *ret_part) MUST_CHECK;

/* Can the penalty be kept?  NULL: yes.  Else what is wrong, a static text. */
const char *limit_penalty_check(const struct limit_penalty *penalty) MUST_CHECK;

/* The most requests that can pass at once. */
int64_t limit_capacity(const struct limit *limit);

/* The time in which the whole capacity comes back, rounded up. */
int64_t limit_window_us(const struct limit *limit);

/* For a funnel, in its units: what one request costs, and what a microsecond pays back. */
void limit_units(const struct limit *limit, int64_t *ret_cost, int64_t *ret_rate);

/* What a limiter answered: of several limits, what holds for all of them together. */
struct limit_state {
    bool allowed;
    bool penalised;    /* refused by the penalty */
    size_t strictest;  /* number of the limit with least left; if refused, with the longest wait */
    int64_t granted;   /* requests that were taken: from need to want (struct limit_job) */
    int64_t remaining; /* requests that could be taken now */
    int64_t retry_us;  /* the time until the request could be allowed; -1: never; 0 if allowed */
    int64_t reset_us;  /* the time until the limit is as if no request had been taken */
};

/* @us, a time in microseconds, in whole seconds, rounded up.  A negative time, "never", is -1. */
int64_t limit_seconds(int64_t us);

/* Input and result of STORAGE_LIMIT: take requests from a limit.  STORAGE_UNKNOWN: they may have
 * been taken. */
struct limit_job {
    struct limit limit;          /* passes limit_check(); ignored if there is a set */
    const struct limit_set *set; /* NULL, or limits that are decided together */
    struct slice policy;         /* a name; each policy has keys of its own.  Empty: no policy */
    struct slice key;            /* what is limited: 1..LIMIT_KEY_MAX bytes */
    int64_t need;                /* take at least this, or nothing; 0: only look */
    int64_t want;                /* take at most this; only a funnel alone takes more than needed */
    bool guard;                  /* private to storage: the key is an ingestion guard's */
    struct limit_state state;    /* written by storage */
};

/* The limit that an answer is about: the only one, or the strictest. */
const struct limit *limit_job_strictest(const struct limit_job *job);

/* Input of STORAGE_LIMIT_RESET: forget what was taken for a key by any limit, and its penalty. */
struct limit_reset_job {
    struct slice key;
    const struct slice *policies; /* n_policies of them; the empty one stands for no policy */
    size_t n_policies;
};

#endif
