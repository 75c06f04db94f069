#include "storage/readers.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/job/queue.h"
#include "storage/read/answers.h"
#include "storage/read/late_periods.h"
#include "storage/readers_queue.h"
#include "storage/session/session.h"

#define CONNECT_MS 1000 /* time for one attempt to connect */
#define RETRY_MS   50   /* pause between two attempts of a job */

/* Connect by the job's deadline, unless the session is connected.  False: there is no
 * connection. */
static bool connect_for(struct reader *r, const struct storage_job *job)
{
    if (r->session.dispatcher != NULL) {
        dispatcher_close_dead(r->session.dispatcher);
        return session_by_dispatcher(&r->session, r->core);
    }
    session_close_if_dead(&r->session);
    int64_t deadline_ms = monotonic_ms() + CONNECT_MS;
    if (job->deadline_ms < deadline_ms) {
        deadline_ms = job->deadline_ms;
    }
    return session_reach(&r->session, r->core, deadline_ms);
}

/* Called under the lock.  @question is settled, or given up: jobs that ask the same may begin. */
static void tell_settled(struct readers *readers, uint64_t question)
{
    if (repeat_settled(&readers->repeats, question) && readers->waiting.first != NULL) {
        pthread_cond_signal(&readers->work); /* one reader answers all jobs that ask the same */
    }
}

/* All entries that @job needs are counted.  Add to *same the jobs that have come meanwhile, ask the
 * same, and need no further entries: one answer serves all. */
static void join_settled(
    struct readers *readers, struct reader *r, struct storage_job *job, struct storage_job **same)
{
    pthread_mutex_lock(&readers->lock);
    struct storage_job *more = readers_take_same(readers, job, r);
    tell_settled(readers, job->question);
    pthread_mutex_unlock(&readers->lock);
    settled_joined(&r->settled, job);
    while (*same != NULL) {
        same = &(*same)->next;
    }
    *same = more;
}

/* Make one attempt at @job.  *ret_lost: a connection was lost, or there is none.  Jobs that the
 * answer serves, too, are added to *same. */
static enum storage_err run_job_once(struct readers *readers, struct reader *r,
    struct storage_job *job, struct storage_job **same, bool *ret_lost)
{
    const struct operation *operation = &readers->operations[job->op];
    *ret_lost = false;
    job->detail[0] = '\0';
    enum storage_err err = core_refuses(r->core);
    if (err != STORAGE_OK) {
        return err;
    }
    if (atomic_load(&r->core->secret) == NULL || redis_clock_ms(&r->core->clock) == 0 ||
        !connect_for(r, job)) { /* without the secret nothing says whose data Redis has */
        *ret_lost = true;
        return STORAGE_DOWN;
    }
    bool must_settle = operation_settles(operation);
    if (must_settle) {
        err = settled_await(&r->settled, r->core, &r->session, job, ret_lost);
    }
    if (err == STORAGE_OK && job->question != 0) {
        join_settled(readers, r, job, same);
    }
    bool keeps = err == STORAGE_OK && operation->own != NULL;
    if (keeps && answers_recall(r, operation->same, operation->share, job)) {
        return STORAGE_OK;
    }
    int64_t since_us = session_stands_since(&r->session);
    if (err == STORAGE_OK && operation->after == AFTER_COUNTED) {
        err = late_periods_learn(r, job->deadline_ms, ret_lost);
    }
    if (err == STORAGE_OK) {
        err = operation->run(r, job, ret_lost);
    }
    if (err == STORAGE_OK && must_settle && !settled_still(&r->session, since_us)) {
        err = STORAGE_DOWN; /* a server may have lost what was settled: try once more */
    }
    if (keeps && err == STORAGE_OK) {
        answers_keep(r, operation->own, operation->share, job);
    }
    if (*ret_lost) {
        session_lost(&r->session);
    }
    if (err == STORAGE_OOM) {
        core_write_failed(r->core, err);
    }
    return err;
}

/* May another attempt succeed where one has failed with @err?  Of several servers, one that was
 * lost or is not ready (LOADING, CLUSTERDOWN) may be replaced soon. */
static bool may_come_back(const struct reader *r, enum storage_err err, bool lost)
{
    return lost || (err == STORAGE_DOWN && r->core->topology != NULL);
}

/* Write into the job's detail which server is away, if @err comes of that.  Returns @err. */
static enum storage_err blame(const struct reader *r, struct storage_job *job, enum storage_err err)
{
    if (err == STORAGE_DOWN || err == STORAGE_LATE || err == STORAGE_BEHIND) {
        servers_blame(r->core, job->detail, sizeof(job->detail));
    }
    return err;
}

/* An attempt at @job has failed, the @first one or a later one: wait until the next attempt.
 * False: the readers stop, and there is none. */
static bool wait_for_another(struct readers *readers, const struct storage_job *job, bool first)
{
    pthread_mutex_lock(&readers->lock);
    if (first) {
        tell_settled(readers, job->question);
    }
    bool stop = readers->stop;
    if (!stop) {
        cond_wait_until_ms(&readers->idle, &readers->lock, monotonic_ms() + RETRY_MS);
    }
    pthread_mutex_unlock(&readers->lock);
    return !stop;
}

/* @job was given up before its question was settled. */
static void not_settled(struct readers *readers, const struct storage_job *job)
{
    pthread_mutex_lock(&readers->lock);
    tell_settled(readers, job->question);
    pthread_mutex_unlock(&readers->lock);
}

/* Run @job, again and again where a connection is lost and Redis may be back by the job's deadline.
 * Each attempt settles the question anew, because Redis may have lost what was settled. */
static enum storage_err run_job(
    struct readers *readers, struct reader *r, struct storage_job *job, struct storage_job **same)
{
    const struct operation *operation = &readers->operations[job->op];
    enum storage_err err = STORAGE_LATE;
    bool first = true;
    while (monotonic_ms() < job->deadline_ms) {
        bool lost = false;
        err = run_job_once(readers, r, job, same, &lost);
        if (!may_come_back(r, err, lost) || !operation->again ||
            monotonic_ms() + RETRY_MS >= job->deadline_ms || atomic_load(&r->core->refusing)) {
            break;
        }
        if (!wait_for_another(readers, job, first)) {
            err = STORAGE_SHUTDOWN;
            break;
        }
        first = false;
    }
    if (err != STORAGE_OK && first) {
        not_settled(readers, job);
    }
    return err;
}

/* Called under the lock.  Wake those who wait until there is nothing to do. */
static void tell_if_idle(struct readers *readers)
{
    if (readers->running == 0 && readers->waiting.first == NULL) {
        pthread_cond_broadcast(&readers->idle);
    }
}

/* Put @job into the queue.  Called under the lock, and gives it up before a thread is woken: the
 * thread would wait for the lock at once. */
static void let_wait(struct readers *readers, struct storage_job *job)
{
    bool is_next = job->deadline_ms < readers->watch_ms;
    readers->watch_ms = is_next ? job->deadline_ms : readers->watch_ms;
    job_queue_append(&readers->waiting, job);
    pthread_mutex_unlock(&readers->lock);
    pthread_cond_signal(&readers->work);
    if (is_next) {
        pthread_cond_signal(&readers->watch);
    }
}

/* Put @job back into the queue if its answer rests on entries that could still be lost: the job is
 * run again when that is over.  False: the job ends with *err. */
static bool put_off(struct readers *readers, struct storage_job *job, enum storage_err *err)
{
    if (*err != STORAGE_OK || job->held_to_ms == 0) {
        return false;
    }
    pthread_mutex_lock(&readers->lock);
    if (readers->stop) {
        pthread_mutex_unlock(&readers->lock);
        *err = STORAGE_SHUTDOWN;
        return false;
    }
    let_wait(readers, job);
    return true;
}

/* @question was begun at @begun_us, and @answered jobs have got the answer. */
static void job_ended(struct readers *readers, uint64_t question, int64_t begun_us, size_t answered)
{
    pthread_mutex_lock(&readers->lock);
    repeat_end(&readers->repeats, question, begun_us, monotonic_us(), answered);
    readers->running--;
    atomic_fetch_sub(&readers->core->questions, 1);
    tell_if_idle(readers);
    pthread_mutex_unlock(&readers->lock);
}

/* Answer the jobs @same with the answer to @job.  This comes before @job is done, because its owner
 * takes the answer away then.  Returns the number of jobs answered. */
static size_t answer_same(const struct readers *readers, const struct storage_job *job,
    struct storage_job *same, enum storage_err err)
{
    size_t n = 0;
    while (same != NULL) {
        struct storage_job *next = same->next;
        bool shared = readers->operations[job->op].share(job, same);
        memcpy(same->detail, job->detail, sizeof(same->detail));
        atomic_fetch_add(&readers->core->stats.queries_joined, 1);
        job_done(same, shared ? err : STORAGE_NOMEM);
        same = next;
        n++;
    }
    return n;
}

static void *reader_main(void *argument)
{
    struct readers *readers = argument;
    struct reader r = {
        .core = readers->core, .session = {.look = {.silence_ms = REDIS_SILENCE_MS}}};
    if (readers->core->is_spread) {
        dispatcher_init(&r.dispatcher, readers->core, &r.session.look);
        r.session.dispatcher = &r.dispatcher;
    }
    struct storage_job *job;
    struct storage_job *same;
    while ((job = readers_next_job(readers, &r, &same)) != NULL) {
        uint64_t question = job->question;
        int64_t begun_us = monotonic_us();
        size_t answered = 0;
        while (job != NULL) {
            enum storage_err err = run_job(readers, &r, job, &same);
            err = blame(&r, job, err);
            if (put_off(readers, job, &err)) {
                break; /* an operation of this kind has no jobs in `same` */
            }
            /* An answer too late for this job may be in time for the others, whose deadlines are
             * later. */
            bool late = err == STORAGE_LATE || err == STORAGE_BEHIND;
            struct storage_job *left = late ? same : NULL;
            answered += 1 + answer_same(readers, job, late ? NULL : same, err);
            job_done(job, err);
            job = left;
            same = left == NULL ? NULL : left->next;
        }
        job_ended(readers, question, begun_us, answered);
    }
    reader_release(&r);
    return NULL;
}

/* The watcher answers jobs whose deadline has passed in the queue: all readers may be busy for
 * longer with a Redis that does not answer.  The watcher sleeps until the earliest deadline of the
 * jobs that came since its last look, so jobs that are soon answered do not wake it each. */
static void *watch_main(void *argument)
{
    struct readers *readers = argument;
    pthread_mutex_lock(&readers->lock);
    while (!readers->stop) {
        int64_t now_ms = monotonic_ms();
        if (now_ms >= readers->watch_ms) {
            struct storage_job *late = job_queue_take_late(&readers->waiting, now_ms);
            readers->watch_ms = job_queue_due_ms(&readers->waiting);
            tell_if_idle(readers);
            pthread_mutex_unlock(&readers->lock);
            jobs_done(late, STORAGE_LATE);
            pthread_mutex_lock(&readers->lock);
            continue;
        }
        cond_wait_until_ms(&readers->watch, &readers->lock, readers->watch_ms);
    }
    pthread_mutex_unlock(&readers->lock);
    return NULL;
}

struct readers *readers_start(struct core *core, const struct operation *operations, unsigned n)
{
    struct readers *readers = calloc(1, sizeof(*readers) + n * sizeof(readers->threads[0]));
    if (readers == NULL) {
        return NULL;
    }
    readers->core = core;
    readers->operations = operations;
    readers->watch_ms = INT64_MAX;
    mutex_init(&readers->lock);
    cond_init(&readers->work);
    cond_init(&readers->idle);
    cond_init(&readers->watch);
    for (; readers->n < n; readers->n++) {
        if (pthread_create(&readers->threads[readers->n], NULL, reader_main, readers) != 0) {
            break;
        }
    }
    readers->watched = pthread_create(&readers->watcher, NULL, watch_main, readers) == 0;
    if (readers->n < n || !readers->watched) {
        readers_stop(readers);
        return NULL;
    }
    return readers;
}

bool readers_submit(struct readers *readers, struct storage_job *job, enum storage_err *ret_err)
{
    *ret_err = STORAGE_OK;
    job->cost = 1;
    job->arrived_us = monotonic_us();
    bool safe = readers->operations[job->op].after == AFTER_SAFE;
    job->held_to_ms = 0;
    job->after = safe ? job->arrived_us : 0;
    operation_hash_fn *hash = readers->operations[job->op].hash;
    job->question = hash != NULL ? hash(job) : 0;
    pthread_mutex_lock(&readers->lock);
    if (readers->draining || readers->stop) {
        *ret_err = STORAGE_SHUTDOWN;
    } else if (readers->waiting.events >= readers->core->config.queue_events) {
        *ret_err = STORAGE_FULL;
    } else {
        let_wait(readers, job);
        return true;
    }
    pthread_mutex_unlock(&readers->lock);
    return false;
}

void readers_drain(struct readers *readers, int64_t deadline_ms)
{
    pthread_mutex_lock(&readers->lock);
    readers->draining = true;
    while (
        (readers->waiting.first != NULL || readers->running > 0) && monotonic_ms() < deadline_ms) {
        cond_wait_until_ms(&readers->idle, &readers->lock, deadline_ms);
    }
    struct storage_job *left = job_queue_take(&readers->waiting, SIZE_MAX);
    pthread_mutex_unlock(&readers->lock);
    jobs_done(left, STORAGE_SHUTDOWN);
    pthread_mutex_lock(&readers->lock);
    while (readers->running > 0) { /* each job ends by its own deadline */
        pthread_cond_wait(&readers->idle, &readers->lock);
    }
    pthread_mutex_unlock(&readers->lock);
}

void readers_stop(struct readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    readers->stop = true;
    pthread_cond_broadcast(&readers->work);
    pthread_cond_signal(&readers->watch);
    pthread_mutex_unlock(&readers->lock);
    for (unsigned i = 0; i < readers->n; i++) {
        pthread_join(readers->threads[i], NULL);
    }
    if (readers->watched) {
        pthread_join(readers->watcher, NULL);
    }
    pthread_cond_destroy(&readers->work);
    pthread_cond_destroy(&readers->idle);
    pthread_cond_destroy(&readers->watch);
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}
