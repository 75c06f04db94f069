#include "storage/write/claims.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/write/claims_batch.h"

#define RETRY_MS 20
#define TIDY_MS  50 /* markers are shortened along with other work, or after so long */

/* ---- the queue ---- */

static void append(struct claims *c, struct storage_job *job)
{
    job->cost = 1; /* the writer gives it its own again */
    job_queue_append(&c->waiting, job);
    if (c->waiting.events == 1) {
        pthread_cond_signal(&c->work);
    }
}

void claims_name(struct claims *c, struct claim *claim)
{
    static const uint8_t none[sizeof(claim->owner.bytes)];
    if (memcmp(claim->owner.bytes, none, sizeof(none)) == 0) {
        uint64_t number = atomic_fetch_add(&c->owners, 1) + 1;
        memcpy(claim->owner.bytes, c->process, sizeof(c->process));
        memcpy(claim->owner.bytes + sizeof(c->process), &number, sizeof(number));
    }
}

/* See claim.h. */
static bool settle(struct storage_job *job)
{
    struct claim *claim = job->u.write.claim;
    struct claims *c = claim->claims;
    if (claim->direct) {
        return false; /* what was applied was stored with its answer; nothing was claimed */
    }
    bool applied = claim->step == STEP_FINISH; /* was before: it is sent once more */
    if (job->err != STORAGE_OK && applied) {
        job->err = STORAGE_UNKNOWN;
    }
    if (job->err == STORAGE_UNKNOWN || (job->err != STORAGE_OK && claim->in_doubt)) {
        return false;
    }
    claim->step = job->err == STORAGE_OK ? STEP_FINISH : STEP_RELEASE;
    pthread_mutex_lock(&c->lock);
    bool taken = !c->drained;
    if (taken) {
        append(c, job);
    }
    pthread_mutex_unlock(&c->lock);
    if (!taken && job->err == STORAGE_OK) {
        job->err = STORAGE_UNKNOWN; /* counted, but a repeat would not know */
    }
    return taken;
}

bool claims_submit(struct claims *c, struct storage_job *job, enum storage_err *ret_err)
{
    struct claim *claim = job->u.claim;
    claim->step = job->op == STORAGE_CLAIM ? STEP_CLAIM : STEP_RELEASE;
    claim->claims = c;
    claim->settle = settle;
    claim->direct = false;
    claims_name(c, claim);
    job->err = STORAGE_OK;
    *ret_err = STORAGE_OK;
    pthread_mutex_lock(&c->lock);
    if (c->draining || c->stop) {
        *ret_err = STORAGE_SHUTDOWN;
    } else if (c->waiting.events >= c->core->config.queue_events) {
        *ret_err = STORAGE_FULL;
    } else {
        append(c, job);
    }
    pthread_mutex_unlock(&c->lock);
    return *ret_err == STORAGE_OK;
}

static struct timespec in_ms(int64_t ms)
{
    int64_t at_ms = monotonic_ms() + ms;
    return (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
}

/* Wait for jobs and take them into the batch; an empty batch: it is time to tidy, or to stop. */
static bool take_batch(struct claims *c)
{
    struct timespec tidy = in_ms(TIDY_MS);
    c->n_batch = 0;
    pthread_mutex_lock(&c->lock);
    int timeout = 0;
    while (c->waiting.first == NULL && !c->stop && timeout != ETIMEDOUT) {
        timeout = c->n_tidy > 0 ? pthread_cond_timedwait(&c->work, &c->lock, &tidy)
                                : pthread_cond_wait(&c->work, &c->lock);
    }
    while (c->waiting.first != NULL && c->n_batch < CLAIMS_BATCH_MAX) {
        c->batch[c->n_batch++] = job_queue_remove(&c->waiting, NULL);
    }
    c->running = c->n_batch > 0;
    bool go_on = !c->stop || c->n_batch > 0;
    pthread_mutex_unlock(&c->lock);
    return go_on;
}

void claims_put_back(struct claims *c, size_t first, size_t n)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = first + n; i-- > first;) {
        job_queue_prepend(&c->waiting, c->batch[i]);
    }
    pthread_mutex_unlock(&c->lock);
}

static void fail_list(struct storage_job *job, enum storage_err err)
{
    while (job != NULL) {
        struct storage_job *next = job->next;
        claims_fail(job, err);
        job = next;
    }
}

/* While the thread waits for Redis, for as long as those in its hand can: others may have less time
 * left, for their bodies came slowly, or none, for they have only to be released. */
static bool answer_late(void *data)
{
    struct claims *c = data;
    pthread_mutex_lock(&c->lock);
    struct storage_job *late = job_queue_take_late(&c->waiting, monotonic_ms());
    pthread_mutex_unlock(&c->lock);
    fail_list(late, STORAGE_LATE);
    return true;
}

static void batch_ended(struct claims *c)
{
    pthread_mutex_lock(&c->lock);
    c->running = false;
    if (c->waiting.first == NULL) {
        pthread_cond_broadcast(&c->idle);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- the thread ---- */

static void pause_ms(struct claims *c, int64_t ms)
{
    struct timespec until = in_ms(ms);
    pthread_mutex_lock(&c->lock);
    while (!c->stop && pthread_cond_timedwait(&c->idle, &c->lock, &until) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&c->lock);
}

static void *claims_main(void *argument)
{
    struct claims *c = argument;
    claims_connect(c);
    while (take_batch(c)) {
        claims_connect(c);
        claims_sort_out(c);
        if (c->session.redis != NULL) {
            claims_ask(c);
        } else {
            claims_put_back(c, 0, c->n_batch);
        }
        bool wait = c->hold || (c->session.redis == NULL && c->n_batch > 0);
        c->hold = false;
        batch_ended(c);
        if (wait) {
            pause_ms(c, RETRY_MS);
        }
    }
    claims_disconnect(c);
    return NULL;
}

/* ---- life ---- */

static void claims_free(struct claims *c)
{
    buffer_release(&c->out);
    buffer_release(&c->keys);
    buffer_release(&c->args);
    buffer_release(&c->tidy);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->idle);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

struct claims *claims_start(
    struct core *core, bool (*resubmit)(void *data, struct storage_job *job), void *data)
{
    struct claims *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    mutex_init(&c->lock);
    cond_init(&c->work);
    cond_init(&c->idle);
    c->core = core;
    c->session.look = (struct redis_look){answer_late, c};
    c->resubmit = resubmit;
    c->resubmit_data = data;
    randombytes_buf(c->process, sizeof(c->process));
    if (pthread_create(&c->thread, NULL, claims_main, c) != 0) {
        claims_free(c);
        return NULL;
    }
    return c;
}

void claims_drain(struct claims *c, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    pthread_mutex_lock(&c->lock);
    c->draining = true;
    while ((c->waiting.first != NULL || c->running) && monotonic_ms() < deadline_ms) {
        (void)pthread_cond_timedwait(&c->idle, &c->lock, &until);
    }
    c->drained = monotonic_ms() >= deadline_ms; /* else who has claimed may still come to his end */
    struct storage_job *left = job_queue_take(&c->waiting, SIZE_MAX);
    pthread_mutex_unlock(&c->lock);
    fail_list(left, STORAGE_SHUTDOWN);
    pthread_mutex_lock(&c->lock);
    while (c->running || c->waiting.first != NULL) { /* each ends by its own deadline */
        (void)pthread_cond_wait(&c->idle, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

void claims_stop(struct claims *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->work);
    pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    claims_free(c);
}
