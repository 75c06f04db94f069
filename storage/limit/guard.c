#include "storage/limit/guard.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/limit/lease.h"

static void on_lease(struct storage_job *job);

struct guard *guard_new(struct core *core, guard_submit_fn *submit, void *submit_data)
{
    struct guard *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return NULL;
    }
    const struct limit *limit = &core->config.guard_limit;
    g->core = core;
    g->submit = submit;
    g->submit_data = submit_data;
    g->on_lease = on_lease;
    lease_set_limit(g, limit);
    g->late_ms = INT64_MAX;
    g->dice = (uint64_t)monotonic_us() * 2 + 1;
    mutex_init(&g->lock);
    return g;
}

void guard_free(struct guard *g)
{
    if (g == NULL) {
        return;
    }
    struct funnel *next;
    for (struct funnel *f = g->newest; f != NULL; f = next) {
        next = f->older;
        free(f);
    }
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- judging ---- */

/* The worst verdict on any of the charges.  *ret_state is the state of the tightest limit.  With
 * the lock held. */
static enum guard_verdict judge_all(struct guard *g, const struct guard_charge *charges, size_t n,
    int64_t now_us, struct limit_state *ret_state)
{
    enum guard_verdict verdict = GUARD_ADMITTED;
    *ret_state = (struct limit_state){.allowed = true, .remaining = INT64_MAX};
    for (size_t i = 0; i < n; i++) {
        struct limit_state one = {.allowed = true};
        struct funnel *f = funnel_find(g, charges[i].who, now_us);
        if (f == NULL) {
            return GUARD_FAILED;
        }
        enum guard_verdict is = funnel_judge(g, f, charges[i].n, now_us, &one.retry_us);
        funnel_describe(g, f, now_us, &one);
        one.allowed = is != GUARD_REFUSED;
        bool first = is == GUARD_REFUSED && verdict != GUARD_REFUSED;
        bool later = is == GUARD_REFUSED && verdict == GUARD_REFUSED && ret_state->retry_us >= 0 &&
                     (one.retry_us < 0 || one.retry_us > ret_state->retry_us);
        bool less =
            is != GUARD_REFUSED && verdict != GUARD_REFUSED && one.remaining < ret_state->remaining;
        if (first || later || less) {
            *ret_state = one;
        }
        verdict = is > verdict ? is : verdict;
    }
    return verdict;
}

/* Take all charges, or none.  With the lock held. */
static enum guard_verdict take_all(struct guard *g, const struct guard_charge *charges, size_t n,
    int64_t now_us, struct limit_state *ret_state)
{
    enum guard_verdict verdict = judge_all(g, charges, n, now_us, ret_state);
    int64_t least = INT64_MAX;
    for (size_t i = 0; verdict == GUARD_ADMITTED && i < n; i++) {
        struct funnel *f = funnel_find(g, charges[i].who, now_us); /* judge_all() has made it */
        if (f != NULL) {
            struct limit_state left = {0};
            lease_add(g, f, -charges[i].n);
            funnel_describe(g, f, now_us, &left); /* after the charge was taken */
            if (left.remaining < least) {
                least = left.remaining;
                ret_state->remaining = left.remaining;
                ret_state->reset_us = left.reset_us;
            }
            lease_prefetch(g, f, now_us);
        }
        ret_state->granted += charges[i].n;
    }
    return verdict;
}

enum guard_verdict guard_try(
    struct guard *g, const struct guard_charge *charges, size_t n, struct limit_state *ret_state)
{
    pthread_mutex_lock(&g->lock);
    enum guard_verdict verdict = take_all(g, charges, n, monotonic_us(), ret_state);
    pthread_mutex_unlock(&g->lock);
    return verdict;
}

bool guard_closed(struct guard *g, struct slice who, struct limit_state *ret_state)
{
    int64_t now_us = monotonic_us();
    *ret_state = (struct limit_state){.allowed = false};
    pthread_mutex_lock(&g->lock);
    struct funnel *f = funnel_find(g, who, now_us);
    bool closed = f != NULL && funnel_judge(g, f, 1, now_us, &ret_state->retry_us) == GUARD_REFUSED;
    if (closed) {
        funnel_describe(g, f, now_us, ret_state);
    }
    pthread_mutex_unlock(&g->lock);
    return closed;
}

void guard_peek(struct guard *g, struct slice who, struct limit_state *ret_state)
{
    pthread_mutex_lock(&g->lock);
    *ret_state = (struct limit_state){.allowed = true, .remaining = g->capacity};
    const struct funnel *f = funnel_known(g, who);
    if (f != NULL) {
        funnel_describe(g, f, monotonic_us(), ret_state);
    }
    pthread_mutex_unlock(&g->lock);
}

/* ---- jobs that wait ---- */

/* Let @job wait for the lease of @f.  With the lock held. */
static void park_job(struct guard *g, struct funnel *f, struct storage_job *job)
{
    g->n_awaited += f->waiting.first == NULL;
    g->late_ms = job->deadline_ms < g->late_ms ? job->deadline_ms : g->late_ms;
    job_queue_append(&f->waiting, job);
}

/* Ask for leases for all charges that lack one, at once: otherwise, in a request for a thousand
 * sites, each lease would wait for the one before.  With the lock held.  Returns the funnel whose
 * answer comes last, for which the job waits.  NULL: none could be asked, and *ret_err says why. */
static struct funnel *ask_leases(
    struct guard *g, const struct storage_job *job, int64_t now_us, enum storage_err *ret_err)
{
    const struct write_job *write = &job->u.write;
    struct funnel *last = NULL;
    int64_t ignored;
    *ret_err = STORAGE_NOMEM;
    for (size_t i = 0; i < write->n_charges; i++) {
        const struct guard_charge *charge = &write->charges[i];
        struct funnel *f = funnel_find(g, charge->who, now_us);
        if (f != NULL && funnel_judge(g, f, charge->n, now_us, &ignored) == GUARD_ASK &&
            (f->asking || lease_ask(g, f, charge->n - f->left, job->deadline_ms, ret_err))) {
            last = f;
        }
    }
    return last;
}

void guard_submit(struct guard *g, struct storage_job *job)
{
    struct write_job *write = &job->u.write;
    enum storage_err err = STORAGE_OK;
    bool parked = false;
    pthread_mutex_lock(&g->lock);
    int64_t now_us = monotonic_us();
    enum guard_verdict verdict =
        take_all(g, write->charges, write->n_charges, now_us, &write->guard);
    if (verdict == GUARD_ASK && job->deadline_ms <= now_us / 1000) {
        err = STORAGE_LATE;
    } else if (verdict == GUARD_ASK) {
        struct funnel *last = ask_leases(g, job, now_us, &err);
        if (last != NULL) {
            job->more_follow = false; /* when the job goes on, no others follow right behind it */
            park_job(g, last, job);
            parked = true;
        }
    }
    pthread_mutex_unlock(&g->lock);
    if (parked) {
        return;
    }
    if (verdict == GUARD_ADMITTED) {
        (void)g->submit(g->submit_data, job, &err);
    } else if (verdict == GUARD_REFUSED) {
        err = STORAGE_LIMITED;
    } else if (verdict == GUARD_FAILED) {
        err = STORAGE_NOMEM;
    }
    if (err != STORAGE_OK) {
        job_done(job, err);
    }
}

/* The lease that a list of jobs waited for came with @err: judge the jobs again, in order.  Without
 * the lock. */
static void judge_again(struct guard *g, struct storage_job *waiting, enum storage_err err)
{
    if (err != STORAGE_OK) { /* no event was sent, whatever became of the lease */
        jobs_done(waiting, err == STORAGE_UNKNOWN ? STORAGE_LATE : err);
        return;
    }
    while (waiting != NULL) {
        struct storage_job *next = waiting->next;
        guard_submit(g, waiting);
        waiting = next;
    }
}

/* A lease was answered, or is given up.  On a sender's thread, without the lock. */
static void on_lease(struct storage_job *job)
{
    struct funnel *f = job->data;
    struct guard *g = f->guard;
    enum storage_err err = job->err;
    pthread_mutex_lock(&g->lock);
    f->asking = false;
    if (err == STORAGE_OK) {
        lease_take(g, f, &job->u.limit);
    }
    struct storage_job *waiting = funnel_take_waiting(g, f);
    pthread_mutex_unlock(&g->lock);
    judge_again(g, waiting, err);
}

/* ---- jobs that have waited too long ---- */

/* Move the jobs of @f whose deadline has come to @ret_late.  With the lock held. */
static void take_late(struct guard *g, struct funnel *f, int64_t now_ms, struct job_queue *ret_late)
{
    struct storage_job *next;
    for (struct storage_job *job = funnel_take_waiting(g, f); job != NULL; job = next) {
        next = job->next;
        if (job->deadline_ms <= now_ms) {
            job_queue_append(ret_late, job);
        } else {
            park_job(g, f, job);
        }
    }
}

/* End the jobs whose deadline has come while they waited.  A lease may have a later deadline than a
 * job, because another job asked for it.  Returns the next job's deadline. */
static int64_t answer_late(struct guard *g, int64_t now_ms)
{
    struct job_queue late = {0};
    pthread_mutex_lock(&g->lock);
    if (now_ms >= g->late_ms) {
        size_t awaited = g->n_awaited;
        g->late_ms = INT64_MAX;
        for (struct funnel *f = g->newest; f != NULL && awaited > 0; f = f->older) {
            if (f->waiting.first != NULL) { /* found soon: such a funnel was used lately */
                awaited--;
                take_late(g, f, now_ms, &late);
            }
        }
    }
    int64_t next_ms = g->late_ms;
    pthread_mutex_unlock(&g->lock);
    jobs_done(late.first, STORAGE_LATE);
    return next_ms;
}

int64_t guard_tick(struct guard *g, int64_t now_ms)
{
    int64_t idle_ms = lease_tick(g, now_ms);
    int64_t late_ms = answer_late(g, now_ms);
    return idle_ms < late_ms ? idle_ms : late_ms;
}

/* ---- settings, and the end ---- */

void guard_set_limit(struct guard *g, const struct limit *limit)
{
    pthread_mutex_lock(&g->lock);
    lease_set_limit(g, limit);
    for (struct funnel *f = g->newest; f != NULL; f = f->older) {
        f->told_us -= FUNNEL_FRESH_US; /* the answer was about the old limit */
        f->hold_until_us = 0;
        if (f->left > g->lease) { /* the rest is lost: less is admitted, never more */
            lease_add(g, f, g->lease - f->left);
        }
    }
    pthread_mutex_unlock(&g->lock);
}

void guard_give_back(struct guard *g)
{
    int64_t now_us = monotonic_us();
    pthread_mutex_lock(&g->lock);
    for (struct funnel *f = g->oldest; f != NULL; f = f->newer) {
        if (f->left > 0 && !f->asking) {
            lease_give_back(g, f, now_us);
        }
    }
    pthread_mutex_unlock(&g->lock);
}
