#include "storage/readers_queue.h"

#include "storage/base/clock.h"
#include "storage/base/cond.h"

#define SAFE_US    10000 /* time between two looks whether entries are safe */
#define JOIN_AMONG 256   /* how many waiting jobs are looked at for the same question */

struct storage_job *readers_take_same(
    struct readers *readers, struct storage_job *job, struct reader *settled)
{
    operation_same_fn *is_same = readers->operations[job->op].same;
    struct storage_job *same = NULL;
    struct storage_job **end = &same;
    struct storage_job *before = NULL;
    struct storage_job *at = readers->waiting.first;
    for (size_t i = 0; is_same != NULL && at != NULL && i < JOIN_AMONG; i++) {
        struct storage_job *next = at->next;
        if (at->op == job->op && at->deadline_ms >= job->deadline_ms && is_same(job, at) &&
            (settled == NULL || settled_is_known(readers->core, &settled->session, at))) {
            *end = job_queue_remove(&readers->waiting, before);
            end = &at->next;
        } else {
            before = at;
        }
        at = next;
    }
    for (at = same; at != NULL; at = at->next) {
        job->arrived_us = at->arrived_us > job->arrived_us ? at->arrived_us : job->arrived_us;
    }
    for (at = same; at != NULL; at = at->next) { /* one of these is read if `job` is too late */
        at->arrived_us = job->arrived_us;
    }
    return same;
}

/* What a look at the waiting jobs has found if no job may begin. */
struct prospect {
    int64_t wait_us; /* look again after this time; INT64_MAX: when a job comes */
    /* When the first and the last of those jobs arrived that wait for a round of folds; 0: none
     * does. */
    int64_t first_us, last_us;
};

/* Called under the lock.  Must entries be safe first on which @job or its answer rests? */
static bool awaits_safety(struct readers *readers, const struct storage_job *job, int64_t now_us)
{
    if (job->after != 0 && core_may_lose(readers->core, job->after)) {
        return true;
    }
    return job->held_to_ms != 0 &&
           (readers->core->is_spread
                   ? now_us / 1000 < job->held_to_ms
                   : standing_awaits(&readers->core->standing, job->held_from_ms, job->held_to_ms));
}

/* Called under the lock.  For how long is the question of @job held back because many jobs ask it?
 * INT64_MAX: until another reader has settled the question.  Rounds of folds hold questions back
 * enough, so a question that @is_settled by them waits no longer. */
static int64_t repeat_wait_us(
    struct readers *readers, const struct storage_job *job, bool is_settled, int64_t now_us)
{
    int64_t due_us = repeat_due_us(&readers->repeats, job->question);
    return due_us == INT64_MAX ? INT64_MAX : is_settled || due_us < now_us ? 0 : due_us - now_us;
}

/* Called under the lock.  May @r begin @job now?  If not, note in @ret when. */
static bool is_due(struct readers *readers, struct reader *r, const struct storage_job *job,
    int64_t now_us, struct prospect *ret)
{
    int64_t wait_us = awaits_safety(readers, job, now_us) ? SAFE_US : 0;
    if (wait_us == 0 && !readers->draining && !readers->stop) {
        enum settled_outlook outlook = operation_settles(&readers->operations[job->op])
                                           ? settled_outlook(readers->core, &r->session, job)
                                           : SETTLED_BY_READER;
        if (outlook == SETTLED_NEAR) {
            bool is_first = ret->first_us == 0 || job->arrived_us < ret->first_us;
            ret->first_us = is_first ? job->arrived_us : ret->first_us;
            ret->last_us = job->arrived_us > ret->last_us ? job->arrived_us : ret->last_us;
            return false;
        }
        wait_us = repeat_wait_us(readers, job, outlook == SETTLED_NOW, now_us);
    }
    ret->wait_us = wait_us > 0 && wait_us < ret->wait_us ? wait_us : ret->wait_us;
    return wait_us == 0;
}

/* Called under the lock.  Take the first job that @r may begin now.  NULL: there is none. */
static struct storage_job *take_due(struct readers *readers, struct reader *r, struct prospect *ret)
{
    int64_t now_us = monotonic_us();
    struct storage_job *before = NULL;
    *ret = (struct prospect){.wait_us = INT64_MAX};
    for (struct storage_job *at = readers->waiting.first; at != NULL; before = at, at = at->next) {
        if (is_due(readers, r, at, now_us, ret)) {
            repeat_begin(&readers->repeats, at->question, now_us);
            return job_queue_remove(&readers->waiting, before);
        }
    }
    return NULL;
}

/* Ask for the round of folds that some jobs wait for, unless it was asked for before; wait until
 * all is counted that the first of these jobs needs, unless another reader waits.  Called under the
 * lock, which is given up meanwhile.  False: neither was to be done. */
static bool ask_for_folds(struct readers *readers, const struct prospect *prospect)
{
    bool asks = prospect->last_us > readers->folds_to_us;
    bool waits = prospect->first_us != 0 && !readers->awaits_folds;
    if (!asks && !waits) {
        return false;
    }
    readers->folds_to_us = asks ? prospect->last_us : readers->folds_to_us;
    readers->awaits_folds = readers->awaits_folds || waits;
    pthread_mutex_unlock(&readers->lock);
    if (asks) {
        (void)core_catch_up(readers->core, prospect->last_us, 0);
    }
    if (waits) {
        (void)core_catch_up(readers->core, prospect->first_us, monotonic_ms() + SETTLED_NEAR_MS);
    }
    pthread_mutex_lock(&readers->lock);
    if (waits) {
        readers->awaits_folds = false;
        pthread_cond_broadcast(&readers->work);
    }
    return true;
}

/* Called under the lock.  Wait until there may be a job to begin. */
static void await_job(struct readers *readers, const struct prospect *prospect)
{
    if (!ask_for_folds(readers, prospect)) {
        int64_t until_us =
            prospect->wait_us == INT64_MAX ? INT64_MAX : monotonic_us() + prospect->wait_us;
        cond_wait_until_us(&readers->work, &readers->lock, until_us);
    }
}

struct storage_job *readers_next_job(
    struct readers *readers, struct reader *r, struct storage_job **ret_same)
{
    struct prospect prospect;
    struct storage_job *job = NULL;
    *ret_same = NULL;
    pthread_mutex_lock(&readers->lock);
    while ((job = take_due(readers, r, &prospect)) == NULL &&
           (!readers->stop || readers->waiting.first != NULL)) {
        await_job(readers, &prospect);
    }
    if (job != NULL) {
        readers->running++;
        atomic_fetch_add(&readers->core->questions, 1);
        bool settled = settled_is_known(readers->core, &r->session, job);
        *ret_same = readers_take_same(readers, job, settled ? r : NULL);
    }
    pthread_mutex_unlock(&readers->lock);
    return job;
}
