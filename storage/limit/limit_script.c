#include "storage/limit/limit_script.h"

#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define FUNNEL_WORDS  6 /* words of a run of jobs */
#define SLIDING_WORDS 3 /* words of a job */
#define POLICY_WORDS  3 /* words of a run of jobs, without its parts */
#define PART_WORDS    4 /* words of each part of a policy */

const size_t limit_script_jobs_max[LIMIT_SCRIPTS] = {
    [LIMIT_SCRIPT_FUNNEL] = LIMIT_SCRIPT_JOBS_MAX,
    [LIMIT_SCRIPT_SLIDING] = 64,
    [LIMIT_SCRIPT_POLICY] = 32,
};

enum limit_script limit_script_of(const struct limit_job *job)
{
    return job->set != NULL                        ? LIMIT_SCRIPT_POLICY
           : job->limit.algorithm == LIMIT_SLIDING ? LIMIT_SCRIPT_SLIDING
                                                   : LIMIT_SCRIPT_FUNNEL;
}

/* ---- keys ---- */

static enum key_limit_kind kind_of(const struct limit *limit)
{
    return limit->algorithm == LIMIT_SLIDING ? KEY_LIMIT_SLIDING : KEY_LIMIT_FUNNEL;
}

static void add_key(struct buffer *out, const struct partitions *partitions,
    enum key_limit_kind kind, size_t nth, struct slice policy, struct slice who)
{
    struct key key;
    resp_slice(out, key_limit(&key, partitions, kind, nth, policy, who));
}

/* The keys of a set's parts.  The first limit of an algorithm has the key that it has alone: what
 * was taken stays taken when the policy gets another limit. */
static void add_set_keys(
    struct buffer *out, const struct partitions *partitions, const struct limit_job *job)
{
    const struct limit_set *set = job->set;
    size_t n_of[2] = {0, 0};
    for (size_t i = 0; i < set->n; i++) {
        const struct limit *limit = &set->limits[i];
        size_t nth = n_of[limit->algorithm]++;
        add_key(out, partitions, kind_of(limit), nth, job->policy, job->key);
    }
    if (set->penalty.refusals > 0) {
        add_key(out, partitions, KEY_LIMIT_PENALTY, 0, job->policy, job->key);
    }
}

static void add_keys(
    struct buffer *out, const struct partitions *partitions, const struct limit_job *job)
{
    if (job->set != NULL) {
        add_set_keys(out, partitions, job);
        return;
    }
    enum key_limit_kind kind = job->guard ? KEY_LIMIT_GUARD : kind_of(&job->limit);
    add_key(out, partitions, kind, 0, job->policy, job->key);
}

static size_t n_parts(const struct limit_job *job)
{
    return job->set == NULL ? 1 : job->set->n + (job->set->penalty.refusals > 0);
}

/* ---- runs: jobs that follow each other and ask for the same limit and number ---- */

static bool asks_the_same(const struct limit_job *a, const struct limit_job *b)
{
    bool same_limit = a->set != NULL ? a->set == b->set
                                     : a->limit.count == b->limit.count &&
                                           a->limit.period_us == b->limit.period_us &&
                                           a->limit.burst == b->limit.burst;
    return same_limit && a->need == b->need && a->want == b->want;
}

static size_t run_length(struct storage_job **jobs, size_t n)
{
    size_t length = 1;
    while (length < n && asks_the_same(&jobs[length]->u.limit, &jobs[0]->u.limit)) {
        length++;
    }
    return length;
}

static size_t run_words(enum limit_script script, const struct limit_job *job, size_t length)
{
    switch (script) {
    case LIMIT_SCRIPT_FUNNEL:
        break;
    case LIMIT_SCRIPT_SLIDING:
        return SLIDING_WORDS * length;
    case LIMIT_SCRIPT_POLICY:
        return POLICY_WORDS + PART_WORDS * n_parts(job);
    }
    return FUNNEL_WORDS;
}

static void add_funnel_run(struct buffer *out, const struct limit_job *job, size_t length)
{
    int64_t cost, rate;
    limit_units(&job->limit, &cost, &rate);
    resp_decimal(out, (int64_t)length);
    resp_decimal(out, cost);
    resp_decimal(out, rate);
    resp_decimal(out, limit_capacity(&job->limit));
    resp_decimal(out, job->need);
    resp_decimal(out, job->want);
}

static void add_sliding_run(struct buffer *out, const struct limit_job *job, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        resp_decimal(out, job->limit.count);
        resp_decimal(out, job->limit.period_us);
        resp_decimal(out, job->need);
    }
}

static void add_part(struct buffer *out, const char *kind, int64_t a, int64_t b, int64_t c)
{
    resp_text(out, kind);
    resp_decimal(out, a);
    resp_decimal(out, b);
    resp_decimal(out, c);
}

static void add_policy_run(struct buffer *out, const struct limit_job *job, size_t length)
{
    const struct limit_set *set = job->set;
    const struct limit_penalty *penalty = &set->penalty;
    resp_decimal(out, (int64_t)length);
    resp_decimal(out, job->need);
    resp_decimal(out, (int64_t)n_parts(job));
    for (size_t i = 0; i < set->n; i++) {
        const struct limit *limit = &set->limits[i];
        int64_t cost, rate;
        limit_units(limit, &cost, &rate);
        if (limit->algorithm == LIMIT_SLIDING) {
            add_part(out, "sliding", limit->count, limit->period_us, 0);
        } else {
            add_part(out, "funnel", limit_capacity(limit), cost, rate);
        }
    }
    if (penalty->refusals > 0) {
        add_part(out, "penalty", penalty->refusals, penalty->within_us, penalty->lasts_us);
    }
}

/* ---- calls ---- */

void limit_script_write(struct buffer *out, const struct script_digests *digests,
    const struct partitions *partitions, enum limit_script script, struct storage_job **jobs,
    size_t n)
{
    static const enum script scripts[LIMIT_SCRIPTS] = {[LIMIT_SCRIPT_FUNNEL] = SCRIPT_FUNNEL,
        [LIMIT_SCRIPT_SLIDING] = SCRIPT_SLIDING,
        [LIMIT_SCRIPT_POLICY] = SCRIPT_POLICY};
    static void (*const add_run[LIMIT_SCRIPTS])(struct buffer *, const struct limit_job *,
        size_t) = {[LIMIT_SCRIPT_FUNNEL] = add_funnel_run,
        [LIMIT_SCRIPT_SLIDING] = add_sliding_run,
        [LIMIT_SCRIPT_POLICY] = add_policy_run};
    size_t keys = 0, words = 0, length;
    for (size_t i = 0; i < n; i += length) {
        const struct limit_job *job = &jobs[i]->u.limit;
        length = run_length(jobs + i, n - i);
        keys += length * n_parts(job);
        words += run_words(script, job, length);
    }
    script_head(out, digests, scripts[script], keys, words);
    for (size_t i = 0; i < n; i++) {
        add_keys(out, partitions, &jobs[i]->u.limit);
    }
    for (size_t i = 0; i < n; i += length) {
        length = run_length(jobs + i, n - i);
        add_run[script](out, &jobs[i]->u.limit, length);
    }
}

void limit_script_write_reset(
    struct buffer *out, const struct partitions *partitions, const struct limit_reset_job *reset)
{
    resp_head(out, 1 + reset->n_policies * (2 * LIMIT_SET_MAX + 1));
    resp_text(out, "UNLINK");
    for (size_t i = 0; i < reset->n_policies; i++) {
        struct slice policy = reset->policies[i];
        for (size_t nth = 0; nth < LIMIT_SET_MAX; nth++) {
            add_key(out, partitions, KEY_LIMIT_FUNNEL, nth, policy, reset->key);
            add_key(out, partitions, KEY_LIMIT_SLIDING, nth, policy, reset->key);
        }
        add_key(out, partitions, KEY_LIMIT_PENALTY, 0, policy, reset->key);
    }
}

/* ---- replies ---- */

size_t limit_script_values(enum limit_script script)
{
    return script == LIMIT_SCRIPT_POLICY ? 5 : 4;
}

void limit_script_read(struct limit_job *job, const struct reply *values)
{
    struct limit_state *state = &job->state;
    int64_t granted = reply_integer(&values[0], -1);
    *state = (struct limit_state){
        .allowed = granted >= 0 || job->need < 0,
        .penalised = granted == -2 && job->set != NULL,
        .granted = granted < 0 ? 0 : granted,
        .remaining = reply_integer(&values[1], 0),
        .retry_us = reply_integer(&values[2], 0),
        .reset_us = reply_integer(&values[3], 0),
    };
    if (job->set != NULL) {
        int64_t strictest = reply_integer(&values[4], 0);
        state->strictest =
            strictest >= 0 && (size_t)strictest < job->set->n ? (size_t)strictest : 0;
    }
}
