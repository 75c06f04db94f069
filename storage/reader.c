#include "storage/reader.h"

#include <stdlib.h>

#include "storage/activity.h"
#include "storage/activity_forget.h"
#include "storage/activity_users.h"
#include "storage/count.h"
#include "storage/count_join.h"
#include "storage/key.h"
#include "storage/overlap.h"
#include "storage/page_sets.h"
#include "storage/pages.h"
#include "storage/reader_op.h"
#include "storage/repeat.h"
#include "storage/rollup_status.h"
#include "storage/session.h"
#include "storage/sites.h"
#include "storage/filter_ops.h"
#include "storage/seen_op.h"

#define CONNECT_MS 1000
#define SILENCE_MS 5000 /* no reply for so long: the connection is dead, or as good as */
#define RETRY_MS   50
#define JOIN_AMONG 256 /* waiting jobs that are looked at for the same question */

struct readers {
    struct core *core;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work, idle;
    struct storage_job *first, *last;
    size_t waiting, running;
    bool draining, stop;
    struct repeats repeats;
    unsigned n;
    pthread_t threads[];
};

/* Connect unless connected; within the job's deadline. */
static bool connect_for(struct reader *r, const struct storage_job *job)
{
    if (r->session.redis != NULL) {
        return true;
    }
    int64_t deadline_ms = monotonic_ms() + CONNECT_MS;
    char error[160];
    if (job->deadline_ms < deadline_ms) {
        deadline_ms = job->deadline_ms;
    }
    if (!session_open(&r->session, r->core, deadline_ms, error, sizeof(error))) {
        return false;
    }
    redis_limit_silence(r->session.redis, SILENCE_MS);
    return true;
}

/* One write that proves that Redis takes writes. */
static enum storage_err probe(struct reader *r, struct storage_job *job, bool *ret_lost)
{
    struct key key;
    struct buffer b;
    const struct reply *reply = NULL;
    buffer_init(&b);
    key_fixed(&key, r->core->partitions.tag[0], "probe", SLICE(""));
    resp_head(&b, 5);
    resp_text(&b, "SET");
    resp_word(&b, key.p, key.n);
    resp_text(&b, "1");
    resp_text(&b, "EX");
    resp_text(&b, "60");
    bool queued = redis_queue(r->session.redis, &b);
    buffer_release(&b);
    if (!queued || redis_await(r->session.redis, job->deadline_ms, &reply) != REDIS_OK_STATUS) {
        *ret_lost = true;
        return STORAGE_DOWN;
    }
    if (reply->type != REPLY_ERROR) {
        return STORAGE_OK;
    }
    reader_op_detail(job, reply);
    return reply_is_error(reply, "OOM") ? STORAGE_OOM : STORAGE_REFUSED;
}

static enum storage_err count(struct reader *r, struct storage_job *job, bool *ret_lost)
{
    struct count_job *question = &job->u.count;
    enum storage_err err = page_set_resolve(
        r, job, &question->set, question->site, &question->pages, &question->n_pages, ret_lost);
    return err == STORAGE_OK ? counter_run(r->counter, &r->session, job, ret_lost) : err;
}

static enum storage_err rollup_status(struct reader *r, struct storage_job *job, bool *ret_lost)
{
    return rollup_status_read(r->core, &r->session, job->deadline_ms, &job->u.rollup, ret_lost);
}

/* again: it may be done again after a lost connection, because doing it twice is the same. */
static const struct {
    reader_op_fn *run;
    bool again;
} ops[STORAGE_OPS] = {
    [STORAGE_COUNT] = {count, true},
    [STORAGE_PROBE] = {probe, false},
    [STORAGE_ROLLUP_STATUS] = {rollup_status, true},
    [STORAGE_ACTIVITY] = {activity_run, true},
    [STORAGE_ACTIVE_USERS] = {active_users_run, true},
    [STORAGE_USER_DAYS] = {user_days_run, true},
    [STORAGE_FORGET_USER] = {forget_user_run, true},
    [STORAGE_PAGES] = {pages_run, true},
    [STORAGE_OVERLAP] = {overlap_run, true},
    [STORAGE_PAGE_SET_PUT] = {page_set_put_run, true},
    [STORAGE_PAGE_SET_GET] = {page_set_get_run, true},
    [STORAGE_PAGE_SET_DELETE] = {page_set_delete_run, true},
    [STORAGE_SITES] = {sites_run, true},
    [STORAGE_FILTER_READ] = {filter_run, true},
    [STORAGE_FILTER_WRITE] = {filter_run, false},
    [STORAGE_SEEN] = {seen_run, true},
};

static enum storage_err run_once(struct reader *r, struct storage_job *job, bool *ret_lost)
{
    *ret_lost = false;
    if (atomic_load(&r->core->settings_differ)) {
        return STORAGE_CONFIG;
    }
    if (redis_clock_ms(&r->core->clock) == 0 || !connect_for(r, job)) {
        *ret_lost = true;
        return STORAGE_DOWN;
    }
    enum storage_err err = ops[job->op].run(r, job, ret_lost);
    if (*ret_lost) {
        session_close(&r->session);
    }
    if (err == STORAGE_OOM) {
        core_write_failed(r->core, err);
    }
    return err;
}

/* A lost connection is tried again, for as long as Redis is expected back. */
static enum storage_err run(struct readers *readers, struct reader *r, struct storage_job *job)
{
    for (;;) {
        bool lost = false;
        enum storage_err err = run_once(r, job, &lost);
        int64_t now_ms = monotonic_ms();
        if (!lost || !ops[job->op].again || now_ms + RETRY_MS >= job->deadline_ms ||
            atomic_load(&r->core->refusing)) {
            return err;
        }
        struct timespec until = {
            .tv_sec = (now_ms + RETRY_MS) / 1000, .tv_nsec = (now_ms + RETRY_MS) % 1000 * 1000000};
        pthread_mutex_lock(&readers->lock);
        bool stop = readers->stop;
        if (!stop) {
            (void)pthread_cond_timedwait(&readers->idle, &readers->lock, &until);
        }
        pthread_mutex_unlock(&readers->lock);
        if (stop) {
            return STORAGE_SHUTDOWN;
        }
    }
}

/* Under the lock: take those of the first waiting jobs that ask what @job asks and may wait as
 * long.  Nothing of @job was sent yet. */
static struct storage_job *take_same(struct readers *readers, const struct storage_job *job)
{
    struct storage_job *same = NULL;
    struct storage_job *before = NULL;
    struct storage_job *at = readers->first;
    for (size_t i = 0; at != NULL && i < JOIN_AMONG; i++) {
        struct storage_job *next = at->next;
        if (at->deadline_ms >= job->deadline_ms && question_same(job, at)) {
            *(before != NULL ? &before->next : &readers->first) = next;
            readers->last = readers->last == at ? before : readers->last;
            readers->waiting--;
            at->next = same;
            same = at;
        } else {
            before = at;
        }
        at = next;
    }
    return same;
}

/* Under the lock: take the first job that may be begun now.  NULL: none; *ret_wait_us: then look
 * again after that time (INT64_MAX: when one has come). */
static struct storage_job *take_due(struct readers *readers, int64_t *ret_wait_us)
{
    int64_t now_us = monotonic_us();
    struct storage_job *before = NULL;
    *ret_wait_us = INT64_MAX;
    for (struct storage_job *at = readers->first; at != NULL; before = at, at = at->next) {
        int64_t wait_us = repeat_due_us(&readers->repeats, at->question) - now_us;
        if (wait_us <= 0 || readers->draining || readers->stop) {
            *(before != NULL ? &before->next : &readers->first) = at->next;
            readers->last = readers->last == at ? before : readers->last;
            readers->waiting--;
            repeat_begin(&readers->repeats, at->question, now_us);
            return at;
        }
        *ret_wait_us = wait_us < *ret_wait_us ? wait_us : *ret_wait_us;
    }
    return NULL;
}

static void wait_for_work(struct readers *readers, int64_t wait_us)
{
    if (wait_us == INT64_MAX) {
        pthread_cond_wait(&readers->work, &readers->lock);
        return;
    }
    int64_t until_us = monotonic_us() + wait_us;
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    (void)pthread_cond_timedwait(&readers->work, &readers->lock, &until);
}

/* The next job, and in *ret_same those that its answer will answer too. */
static struct storage_job *next_job(struct readers *readers, struct storage_job **ret_same)
{
    int64_t wait_us = INT64_MAX;
    struct storage_job *job = NULL;
    *ret_same = NULL;
    pthread_mutex_lock(&readers->lock);
    while (
        (job = take_due(readers, &wait_us)) == NULL && (!readers->stop || readers->first != NULL)) {
        wait_for_work(readers, wait_us);
    }
    if (job != NULL) {
        readers->running++;
        atomic_fetch_add(&readers->core->questions, 1);
        *ret_same = take_same(readers, job);
    }
    pthread_mutex_unlock(&readers->lock);
    return job;
}

/* @question was begun at @begun_us and answered to @answered. */
static void job_ended(struct readers *readers, uint64_t question, int64_t begun_us, size_t answered)
{
    pthread_mutex_lock(&readers->lock);
    repeat_end(&readers->repeats, question, begun_us, monotonic_us(), answered);
    readers->running--;
    atomic_fetch_sub(&readers->core->questions, 1);
    if (readers->running == 0 && readers->first == NULL) {
        pthread_cond_broadcast(&readers->idle);
    }
    pthread_mutex_unlock(&readers->lock);
}

/* Before @job's own answer: its owner takes it away then.  Returns how many. */
static size_t answer_same(struct core *core, const struct storage_job *job,
    struct storage_job *same, enum storage_err err)
{
    size_t n = 0;
    while (same != NULL) {
        struct storage_job *next = same->next;
        bool shared = question_share(job, same);
        atomic_fetch_add(&core->stats.queries_joined, 1);
        job_done(same, shared ? err : STORAGE_NOMEM);
        same = next;
        n++;
    }
    return n;
}

static void *reader_main(void *argument)
{
    struct readers *readers = argument;
    struct reader r = {.core = readers->core};
    struct storage_job *job;
    struct storage_job *same;
    while ((job = next_job(readers, &same)) != NULL) {
        uint64_t question = job->question;
        int64_t begun_us = monotonic_us();
        size_t answered = 0;
        while (job != NULL) {
            enum storage_err err = STORAGE_NOMEM;
            if (r.counter == NULL) { /* no memory for it the last time is no reason for ever */
                r.counter = counter_new(r.core);
            }
            if (r.counter != NULL) {
                err = monotonic_ms() >= job->deadline_ms ? STORAGE_LATE : run(readers, &r, job);
            }
            /* too late for this one: the others have their own deadlines */
            struct storage_job *left = err == STORAGE_LATE ? same : NULL;
            answered += 1 + answer_same(r.core, job, err == STORAGE_LATE ? NULL : same, err);
            job_done(job, err);
            job = left;
            same = left == NULL ? NULL : left->next;
        }
        job_ended(readers, question, begun_us, answered);
    }
    session_close(&r.session);
    counter_free(r.counter);
    return NULL;
}

struct readers *readers_start(struct core *core, unsigned n)
{
    struct readers *readers = calloc(1, sizeof(*readers) + n * sizeof(readers->threads[0]));
    if (readers == NULL) {
        return NULL;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    readers->core = core;
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->work, &monotonic);
    pthread_cond_init(&readers->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (; readers->n < n; readers->n++) {
        if (pthread_create(&readers->threads[readers->n], NULL, reader_main, readers) != 0) {
            readers_stop(readers);
            return NULL;
        }
    }
    return readers;
}

bool readers_submit(struct readers *readers, struct storage_job *job, enum storage_err *ret_err)
{
    *ret_err = STORAGE_OK;
    job->next = NULL;
    job->question = question_hash(job);
    pthread_mutex_lock(&readers->lock);
    if (readers->draining || readers->stop) {
        *ret_err = STORAGE_SHUTDOWN;
    } else if (readers->waiting >= readers->core->config.queue_events) {
        *ret_err = STORAGE_FULL;
    } else {
        if (readers->last == NULL) {
            readers->first = job;
        } else {
            readers->last->next = job;
        }
        readers->last = job;
        readers->waiting++;
        pthread_cond_signal(&readers->work);
    }
    pthread_mutex_unlock(&readers->lock);
    return *ret_err == STORAGE_OK;
}

/* Questions that nobody has begun are answered with @err. */
static void fail_waiting(struct readers *readers, enum storage_err err)
{
    pthread_mutex_lock(&readers->lock);
    struct storage_job *job = readers->first;
    readers->first = readers->last = NULL;
    readers->waiting = 0;
    pthread_mutex_unlock(&readers->lock);
    while (job != NULL) {
        struct storage_job *next = job->next;
        job_done(job, err);
        job = next;
    }
}

void readers_drain(struct readers *readers, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    pthread_mutex_lock(&readers->lock);
    readers->draining = true;
    while ((readers->first != NULL || readers->running > 0) && monotonic_ms() < deadline_ms) {
        (void)pthread_cond_timedwait(&readers->idle, &readers->lock, &until);
    }
    pthread_mutex_unlock(&readers->lock);
    fail_waiting(readers, STORAGE_SHUTDOWN);
    pthread_mutex_lock(&readers->lock);
    while (readers->running > 0) { /* each ends by its own deadline */
        pthread_cond_wait(&readers->idle, &readers->lock);
    }
    pthread_mutex_unlock(&readers->lock);
}

void readers_stop(struct readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    readers->stop = true;
    pthread_cond_broadcast(&readers->work);
    pthread_mutex_unlock(&readers->lock);
    for (unsigned i = 0; i < readers->n; i++) {
        pthread_join(readers->threads[i], NULL);
    }
    pthread_cond_destroy(&readers->work);
    pthread_cond_destroy(&readers->idle);
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}
