#include "storage/log/writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/log/writer_state.h"

#define ENTRY_EVENTS_MAX 10000
#define ENTRY_BYTES_MAX  524288 /* Redis copies so many in 1 or 2 ms.  One request may be longer */
#define KEYED_EVENTS_MAX 1000   /* of an entry with keys: a request with a key is four words */

void writer_wake(struct writer *w)
{
    (void)eventfd_write(w->wake_fd, 1);
}

/* ---- what waits ---- */

/* Under the lock: add to the gauge of all writers what this queue has more, or less, than before.
 */
static void show_queue(struct writer *w)
{
    atomic_fetch_add(
        &w->core->stats.queue_events, (int64_t)w->queue.events - (int64_t)w->shown_events);
    w->shown_events = w->queue.events;
}

/* Under the lock: is there no room for @job?  The requests that wait for all writers share one
 * bound, which two of them may pass at once by a job each.  A writer for which nothing waits takes
 * one job in any case: so it works while others, whose servers are away, hold all of the bound. */
static bool is_full(const struct writer *w, const struct storage_job *job)
{
    size_t all = (size_t)atomic_load(&w->core->stats.queue_events);
    return w->queue.events > 0 && all + job->cost > w->core->config.queue_events;
}

enum storage_err writer_submit(struct writer *w, struct storage_job *job, bool is_new)
{
    bool wake = false;
    bool later = job->more_follow; /* the job may be gone once it is in the queue */
    enum storage_err err = STORAGE_OK;
    pthread_mutex_lock(&w->lock);
    if (w->draining || w->stop) {
        err = STORAGE_SHUTDOWN;
    } else if (is_new && is_full(w, job)) {
        err = STORAGE_FULL;
        atomic_fetch_add(&w->core->stats.queue_refused, 1);
    } else {
        job_queue_append(&w->queue, job);
        show_queue(w);
        w->busy = true;
        w->due_ms = job->deadline_ms < w->due_ms ? job->deadline_ms : w->due_ms;
        bool is_enough = w->queue.events >= w->wake_at;
        w->wake_at = is_enough ? SIZE_MAX : w->wake_at;
        wake = is_enough || job->deadline_ms < w->look_ms;
    }
    pthread_mutex_unlock(&w->lock);
    if (wake && later) {
        atomic_store(&w->wake_due, true);
    } else if (wake) {
        writer_wake(w);
    }
    return err;
}

void writer_flush(struct writer *w)
{
    if (atomic_load(&w->wake_due) && atomic_exchange(&w->wake_due, false)) {
        writer_wake(w);
    }
}

/* How many events the next entry gets at most.  If fewer than KEYED_EVENTS_MAX wait ahead of the
 * first request with a key, the entry may have keys, and gets KEYED_EVENTS_MAX; else it ends before
 * that request.  An entry without keys is not much larger than @room, nor, if it has several
 * requests, than what Redis copies in a moment. */
static size_t most_events(const struct job_queue *queue, size_t room)
{
    size_t events = 0;
    size_t bytes = 0;
    size_t most = room < ENTRY_EVENTS_MAX ? room : ENTRY_EVENTS_MAX;
    for (const struct storage_job *job = queue->first; job != NULL && events < most;
         job = job->next) {
        if (job->u.write.keyed != NULL) {
            return events < KEYED_EVENTS_MAX ? KEYED_EVENTS_MAX : events;
        }
        events += job->cost;
        bytes += job->chunk.n;
        most = bytes >= ENTRY_BYTES_MAX ? events : most;
    }
    return most;
}

struct storage_job *writer_take_jobs(struct writer *w, size_t min_events, size_t room)
{
    struct storage_job *jobs = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->queue.events >= min_events) {
        jobs = job_queue_take(&w->queue, most_events(&w->queue, room));
    }
    show_queue(w);
    pthread_mutex_unlock(&w->lock);
    return jobs;
}

int64_t writer_fail_late(struct writer *w, int64_t now_ms)
{
    pthread_mutex_lock(&w->lock);
    struct storage_job *late = job_queue_take_late(&w->queue, now_ms);
    if (w->queue.first == NULL || w->due_ms <= now_ms) {
        w->due_ms = job_queue_due_ms(&w->queue);
    }
    int64_t due_ms = w->due_ms;
    show_queue(w);
    pthread_mutex_unlock(&w->lock);
    jobs_done(late, STORAGE_LATE);
    return due_ms;
}

/* A request with a key has its place; any other may go to another writer, while its own one is
 * away.  Returns those that did not; where @err is STORAGE_DOWN, they say which server is away. */
static struct storage_job *send_elsewhere(
    struct writer *w, struct storage_job *jobs, enum storage_err err)
{
    struct job_queue left = {0};
    while (jobs != NULL) {
        struct storage_job *next = jobs->next;
        if (jobs->u.write.keyed != NULL || !w->share->elsewhere(w->share->data, jobs)) {
            if (err == STORAGE_DOWN) {
                servers_blame(w->core, jobs->detail, sizeof(jobs->detail));
            }
            job_queue_append(&left, jobs);
        }
        jobs = next;
    }
    return left.first;
}

void writer_fail_waiting(struct writer *w, enum storage_err err)
{
    bool moves = (err == STORAGE_DOWN || err == STORAGE_ALONE) && w->core->is_spread;
    for (struct storage_job *jobs = writer_take_jobs(w, 1, SIZE_MAX); jobs != NULL;
         jobs = writer_take_jobs(w, 1, SIZE_MAX)) {
        jobs_done(moves ? send_elsewhere(w, jobs, err) : jobs, err);
    }
}

/* ---- life ---- */

enum storage_err writer_away(const struct writer *w)
{
    return (enum storage_err)atomic_load(&w->away);
}

bool writer_is_connected(const struct writer *w)
{
    return atomic_load(&w->is_connected);
}

void writer_free(struct writer *w)
{
    session_close(&w->session);
    appender_release(&w->appender);
    if (w->wake_fd >= 0) {
        servers_unwatch(w->core, w->wake_fd);
        close(w->wake_fd);
    }
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct writer *writer_start(
    struct core *core, unsigned place, struct unfolded *unfolded, struct writers_share *share)
{
    struct writer *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    mutex_init(&w->lock);
    cond_init(&w->idle);
    w->core = core;
    w->share = share;
    w->session.server.partition = core_log_partition(core, place);
    w->session.look = (struct redis_look){writer_look, w, 0};
    w->session.is_writers = true;
    w->retry_ms = WRITER_RETRY_MIN_MS;
    w->due_ms = INT64_MAX;
    int64_t away_ms =
        server_away_ms(core, w->session.server.partition, w->session.why, sizeof(w->session.why));
    w->disconnected_ms =
        monotonic_ms() - away_ms; /* no request waits where the server is known to be away */
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    appender_init(&w->appender, core, place, unfolded);
    if (w->wake_fd < 0 || !servers_watch(core, w->wake_fd) ||
        pthread_create(&w->thread, NULL, writer_main, w) != 0) {
        writer_free(w);
        return NULL;
    }
    return w;
}

void writer_drain_begin(struct writer *w, int64_t deadline_ms)
{
    pthread_mutex_lock(&w->lock);
    w->draining = true;
    w->drain_deadline_ms = deadline_ms;
    pthread_mutex_unlock(&w->lock);
    writer_wake(w);
}

void writer_drain_end(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->busy) {
        pthread_cond_wait(&w->idle, &w->lock); /* the thread keeps the deadline */
    }
    pthread_mutex_unlock(&w->lock);
}

void writer_stop_begin(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
    writer_wake(w);
}

void writer_stop_end(struct writer *w)
{
    pthread_join(w->thread, NULL);
}
