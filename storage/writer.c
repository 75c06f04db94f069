#include "storage/writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "storage/delivery.h"
#include "storage/job_queue.h"
#include "storage/limiter.h"
#include "storage/reply_order.h"
#include "storage/session.h"

#define FLUSHES_MAX      2 /* under way at once */
#define FLUSH_EVENTS_MAX 10000
#define LIMITS_MAX       1000 /* taken at once */
#define ROUNDS_MAX       2    /* of limits under way at once, but for those that go with a flush */
#define CONNECT_MS       1000 /* one attempt to connect and prepare */
#define LOOK_MS          50   /* while no flush can begin: how often deadlines are looked at */
#define SILENCE_MS       5000 /* no reply for so long: the connection is dead, or as good as */
#define STEADY_MS        1000 /* a connection that held so long was a good one */
#define RETRY_MIN_MS     10
#define RETRY_MAX_MS     500
#define PATIENCE_MS      1000 /* without a connection for so long: refuse at once */

/* Whose a reply is. */
enum reply_owner { REPLY_OF_LIMITER, REPLY_OF_DELIVERY };

struct writer {
    struct core *core;
    pthread_t thread;
    int wake_fd; /* eventfd */

    pthread_mutex_t lock;                        /* guards the next nine */
    int64_t (*tick)(void *data, int64_t now_ms); /* NULL: nobody asks */
    void *tick_data;
    pthread_cond_t idle;
    struct job_queue queue;
    struct job_queue limits; /* jobs for the limiter */
    size_t wake_at_limits;   /* like wake_at */
    size_t wake_at; /* the thread sleeps until so many events wait; SIZE_MAX: do not wake it */
    bool busy;      /* jobs are waiting or under way */
    bool draining, stop;
    int64_t drain_deadline_ms;

    /* The thread's own. */
    struct session session;
    struct flush_maker *maker;
    struct delivery delivery;
    struct limiter limiter;
    struct reply_order order; /* of enum reply_owner */
    bool prepared_once;
    bool output_left;        /* the socket did not take everything */
    bool lost;               /* give the connection up */
    int64_t connected_ms;    /* since when */
    int64_t heard_ms;        /* last reply, or last time none was awaited */
    int64_t disconnected_ms; /* since when; 0 while connected */
    int64_t next_connect_ms, retry_ms;
    int64_t tick_ms; /* when tick asked to be called */
};

/* ---- jobs ---- */

static void show_queue(struct writer *w)
{
    atomic_store(&w->core->stats.queue_events, (int64_t)w->queue.events);
}

/* Put @job into its queue.  True: the thread is to be woken. */
static bool enqueue(struct writer *w, struct storage_job *job)
{
    bool writes = job->op == STORAGE_WRITE;
    struct job_queue *queue = writes ? &w->queue : &w->limits;
    size_t *wake_at = writes ? &w->wake_at : &w->wake_at_limits;
    job_queue_append(queue, job);
    show_queue(w);
    w->busy = true;
    bool wake = queue->events >= *wake_at;
    *wake_at = wake ? SIZE_MAX : *wake_at;
    return wake;
}

bool writer_submit(struct writer *w, struct storage_job *job, enum storage_err *ret_err)
{
    bool wake = false;
    *ret_err = STORAGE_OK;
    pthread_mutex_lock(&w->lock);
    /* Who has claimed a key was taken before, and is let through. */
    bool claimed = job->u.write.claim != NULL && monotonic_ms() < w->drain_deadline_ms;
    if ((w->draining && !claimed) || w->stop) {
        *ret_err = STORAGE_SHUTDOWN;
    } else if (w->queue.events + w->limits.events > 0 &&
               w->queue.events + w->limits.events + job->cost > w->core->config.queue_events) {
        *ret_err = STORAGE_FULL;
    } else {
        wake = enqueue(w, job);
    }
    pthread_mutex_unlock(&w->lock);
    if (wake) {
        (void)eventfd_write(w->wake_fd, 1);
    }
    if (*ret_err == STORAGE_FULL) {
        atomic_fetch_add(&w->core->stats.queue_refused, 1);
    }
    return *ret_err == STORAGE_OK;
}

/* A flush with direct requests must fit into one script: it is kept small, or ends before them. */
static size_t most_events(const struct job_queue *queue)
{
    size_t events = 0;
    for (const struct storage_job *job = queue->first; job != NULL && events < FLUSH_EVENTS_MAX;
         job = job->next) {
        if (job->u.write.claim != NULL && job->u.write.claim->direct) {
            return events < FLUSH_DIRECT_MAX ? FLUSH_DIRECT_MAX : events;
        }
        events += job->cost;
    }
    return FLUSH_EVENTS_MAX;
}

static struct storage_job *take_jobs(struct writer *w, size_t min_events)
{
    struct storage_job *jobs = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->queue.events >= min_events) {
        jobs = job_queue_take(&w->queue, most_events(&w->queue));
    }
    show_queue(w);
    pthread_mutex_unlock(&w->lock);
    return jobs;
}

static struct storage_job *take_limits(struct writer *w, size_t min)
{
    struct storage_job *jobs = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->limits.events >= min) {
        jobs = job_queue_take(&w->limits, LIMITS_MAX);
    }
    pthread_mutex_unlock(&w->lock);
    return jobs;
}

static void fail_jobs(struct storage_job *jobs, enum storage_err err)
{
    while (jobs != NULL) {
        struct storage_job *next = jobs->next;
        free(jobs->rows);
        jobs->rows = NULL;
        job_done(jobs, err);
        jobs = next;
    }
}

/* Waiting jobs whose time is up: nothing of them was sent. */
static void fail_late(struct writer *w, int64_t now_ms)
{
    pthread_mutex_lock(&w->lock);
    struct storage_job *late = job_queue_take_late(&w->queue, now_ms);
    struct storage_job *late_limits = job_queue_take_late(&w->limits, now_ms);
    show_queue(w);
    pthread_mutex_unlock(&w->lock);
    fail_jobs(late, STORAGE_LATE);
    fail_jobs(late_limits, STORAGE_LATE);
}

/* How many events must wait before a flush begins.  One while Redis is free; while it works on one,
 * as many as that had: then it finds the next one when it is done, and neither is smaller for it.
 */
static size_t events_to_begin(const struct writer *w)
{
    size_t under_way = 0;
    if (w->session.redis == NULL || w->delivery.n_flushes >= FLUSHES_MAX) {
        return SIZE_MAX;
    }
    for (const struct flush *flush = w->delivery.flushes; flush != NULL; flush = flush->next) {
        under_way += flush->n_rows;
    }
    return under_way == 0 ? 1 : under_way;
}

/* The same for limits. */
static size_t limits_to_begin(const struct writer *w)
{
    size_t under_way = limiter_pending(&w->limiter);
    if (w->session.redis == NULL || w->limiter.rounds >= ROUNDS_MAX) {
        return SIZE_MAX;
    }
    return under_way == 0 ? 1 : under_way;
}

/* True: a flush goes out. */
static bool start_flush(struct writer *w)
{
    struct storage_job *jobs = take_jobs(w, events_to_begin(w));
    if (jobs == NULL) {
        return false;
    }
    struct flush *flush = flush_make(w->maker, jobs, redis_clock_ms(&w->core->clock));
    if (flush == NULL) {
        fail_jobs(jobs, STORAGE_NOMEM);
        return false;
    }
    flush->sent_us = monotonic_us();
    delivery_add(&w->delivery, flush);
    return true;
}

/* @n commands of @owner, encoded, go out next. */
static void queue_commands(
    struct writer *w, const struct buffer *out, enum reply_owner owner, size_t n)
{
    if (n == 0 || w->lost) {
        return;
    }
    w->output_left = true;
    w->lost = !redis_queue(w->session.redis, out) || !reply_order_push(&w->order, (int)owner, n);
}

/* Limits go with the flush, in one write. */
static void send_limits(struct writer *w, int64_t now_ms, bool with_flush)
{
    struct storage_job *jobs = take_limits(w, with_flush ? 1 : limits_to_begin(w));
    w->lost = !limiter_pump(&w->limiter, &w->session, jobs, now_ms) || w->lost;
    queue_commands(w, &w->limiter.out, REPLY_OF_LIMITER, w->limiter.scripts);
}

static void send_flushes(struct writer *w, int64_t now_ms)
{
    if (!delivery_pump(&w->delivery, &w->session, now_ms)) {
        w->lost = true;
    }
    queue_commands(w, &w->delivery.out, REPLY_OF_DELIVERY, w->delivery.scripts);
    if (w->lost) {
        return;
    }
    if (w->output_left && redis_send(w->session.redis, &w->output_left) != REDIS_OK_STATUS) {
        w->lost = true;
    }
}

static bool take_reply(struct writer *w, const struct reply *reply)
{
    int owner;
    if (!reply_order_pop(&w->order, &owner)) {
        return false; /* an answer nobody asked for */
    }
    return owner == REPLY_OF_LIMITER ? limiter_take_reply(&w->limiter, reply)
                                     : delivery_take_reply(&w->delivery, reply);
}

static void read_replies(struct writer *w)
{
    w->heard_ms = monotonic_ms();
    if (redis_receive(w->session.redis) != REDIS_OK_STATUS) {
        w->lost = true;
        return;
    }
    for (;;) {
        const struct reply *reply = NULL;
        if (redis_next(w->session.redis, &reply) != REDIS_OK_STATUS) {
            w->lost = true;
        }
        if (reply == NULL || w->lost) {
            return;
        }
        w->lost = !take_reply(w, reply);
    }
}

/* ---- the connection ---- */

static void back_off(struct writer *w, int64_t now_ms)
{
    w->next_connect_ms = now_ms + w->retry_ms;
    w->retry_ms = w->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : w->retry_ms * 2;
}

static void disconnect(struct writer *w, int64_t now_ms)
{
    session_close(&w->session);
    delivery_lost(&w->delivery);
    limiter_lost(&w->limiter);
    reply_order_clear(&w->order);
    w->lost = false;
    w->output_left = false;
    w->disconnected_ms = now_ms;
    if (now_ms - w->connected_ms >= STEADY_MS) {
        w->retry_ms = RETRY_MIN_MS;
        w->next_connect_ms = now_ms;
    } else { /* it connects, and is of no use: do not try again and again */
        back_off(w, now_ms);
    }
    atomic_store(&w->core->ready, false);
    core_write_failed(w->core, STORAGE_DOWN);
    atomic_store(&w->core->stats.redis_connected, 0);
    core_notice(w->core, STORAGE_DISCONNECTED, "");
}

/* Earliest deadline of a job, or INT64_MAX.  Jobs wait in order of arrival, and all have the same
 * time, so the first is the earliest but for requests with another clock; a second late does no
 * harm. */
static int64_t next_deadline_ms(struct writer *w)
{
    int64_t next = INT64_MAX;
    pthread_mutex_lock(&w->lock);
    if (w->queue.first != NULL) {
        next = w->queue.first->deadline_ms;
    }
    if (w->limits.first != NULL && w->limits.first->deadline_ms < next) {
        next = w->limits.first->deadline_ms;
    }
    if (w->draining && w->busy && w->drain_deadline_ms < next) {
        next = w->drain_deadline_ms;
    }
    pthread_mutex_unlock(&w->lock);
    int64_t limits = limiter_deadline_ms(&w->limiter);
    next = limits < next ? limits : next;
    int64_t under_way = delivery_deadline_ms(&w->delivery);
    return under_way < next ? under_way : next;
}

static void try_connect(struct writer *w, int64_t now_ms)
{
    char error[400] = ""; /* names a site and its zones */
    int64_t deadline_ms = now_ms + CONNECT_MS;
    int64_t first_ms = next_deadline_ms(w);
    if (first_ms < deadline_ms) {
        deadline_ms = first_ms > now_ms + 20 ? first_ms : now_ms + 20;
    }
    if (session_open(&w->session, w->core, deadline_ms, error, sizeof(error))) {
        if (session_prepare(
                &w->session, w->core, !w->prepared_once, deadline_ms, error, sizeof(error))) {
            w->prepared_once = true;
            w->disconnected_ms = 0;
            w->connected_ms = monotonic_ms();
            atomic_store(&w->core->refusing, false);
            atomic_store(&w->core->ready, true);
            atomic_store(&w->core->stats.redis_connected, 1);
            core_notice(w->core, STORAGE_CONNECTED, "");
            return;
        }
        session_close(&w->session);
    }
    back_off(w, monotonic_ms());
    core_notice(w->core,
        atomic_load(&w->core->settings_differ) ? STORAGE_SETTINGS_DIFFER : STORAGE_CONNECT_FAILED,
        error);
}

static void fail_waiting(struct writer *w, enum storage_err err)
{
    for (struct storage_job *jobs = take_jobs(w, 1); jobs != NULL; jobs = take_jobs(w, 1)) {
        fail_jobs(jobs, err);
    }
    for (struct storage_job *jobs = take_limits(w, 1); jobs != NULL; jobs = take_limits(w, 1)) {
        fail_jobs(jobs, err);
    }
}

/* Without a connection for too long: answer who waits, and refuse who comes, at once. */
static void lose_patience(struct writer *w, int64_t now_ms)
{
    if (now_ms - w->disconnected_ms < PATIENCE_MS && !atomic_load(&w->core->settings_differ)) {
        return;
    }
    enum storage_err err = atomic_load(&w->core->settings_differ) ? STORAGE_CONFIG : STORAGE_DOWN;
    atomic_store(&w->core->refusing, true);
    fail_waiting(w, err);
}

/* ---- the loop ---- */

static void call_tick(struct writer *w, int64_t now_ms)
{
    pthread_mutex_lock(&w->lock);
    int64_t (*tick)(void *, int64_t) = w->tick;
    void *data = w->tick_data;
    pthread_mutex_unlock(&w->lock);
    w->tick_ms = tick != NULL ? tick(data, now_ms) : INT64_MAX;
}

/* One turn's work, without waiting. */
static void work(struct writer *w)
{
    int64_t now_ms = monotonic_ms();
    if (w->session.redis == NULL && now_ms >= w->next_connect_ms) {
        try_connect(w, now_ms);
        now_ms = monotonic_ms();
    }
    struct flush *done = delivery_take_done(&w->delivery);
    if (w->session.redis == NULL) {
        lose_patience(w, now_ms);
    } else if (!w->lost) {
        w->heard_ms = w->order.n == 0 ? now_ms : w->heard_ms;
        w->lost = now_ms - w->heard_ms > SILENCE_MS;
        if (!w->lost) {
            send_limits(w, now_ms, start_flush(w));
            send_flushes(w, now_ms);
        }
    }
    limiter_finish(&w->limiter);
    delivery_finish(&w->delivery, done); /* after sending: Redis works while clients are answered */
    fail_late(w, now_ms);
    delivery_answer_late(&w->delivery, now_ms);
    limiter_answer_late(&w->limiter, now_ms);
    if (w->lost) {
        disconnect(w, now_ms);
    }
    call_tick(w, now_ms);
}

/* How long poll() may sleep, in ms; -1 for ever. */
static int patience(struct writer *w)
{
    int64_t now_ms = monotonic_ms();
    int64_t wake_ms = next_deadline_ms(w);
    if (w->session.redis == NULL && w->next_connect_ms < wake_ms) {
        wake_ms = w->next_connect_ms;
    }
    wake_ms = w->tick_ms < wake_ms ? w->tick_ms : wake_ms;
    int64_t hold_ms = w->delivery.hold_until_ms;
    if (hold_ms > now_ms && w->delivery.flushes != NULL && hold_ms < wake_ms) {
        wake_ms = hold_ms;
    }
    hold_ms = w->limiter.hold_until_ms;
    if (hold_ms > now_ms && w->limiter.again.first != NULL && hold_ms < wake_ms) {
        wake_ms = hold_ms;
    }
    if ((w->delivery.n_flushes > 0 || limiter_pending(&w->limiter) > 0) &&
        now_ms + LOOK_MS < wake_ms) {
        wake_ms = now_ms + LOOK_MS; /* who comes now does not wake us, but has a deadline */
    }
    if (wake_ms == INT64_MAX) {
        return -1;
    }
    return wake_ms <= now_ms ? 0 : wake_ms - now_ms > 60000 ? 60000 : (int)(wake_ms - now_ms);
}

/* Decide, under the lock, whether there is work at once; else the next job wakes us. */
static bool may_sleep(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    bool connected = w->session.redis != NULL;
    size_t begin = events_to_begin(w);
    size_t begin_limits = limits_to_begin(w);
    bool sleep = w->queue.events < begin && w->limits.events < begin_limits && !w->stop;
    w->wake_at = !sleep ? SIZE_MAX : !connected ? 1 : begin;
    w->wake_at_limits = !sleep ? SIZE_MAX : !connected ? 1 : begin_limits;
    if (w->queue.first == NULL && w->limits.first == NULL && w->delivery.flushes == NULL &&
        limiter_pending(&w->limiter) == 0) {
        w->busy = false;
        pthread_cond_broadcast(&w->idle);
    }
    pthread_mutex_unlock(&w->lock);
    return sleep;
}

static void wait_for_events(struct writer *w)
{
    struct pollfd fds[2] = {{.fd = w->wake_fd, .events = POLLIN}, {.fd = -1}};
    int timeout = 0;
    if (w->session.redis != NULL) {
        fds[1].fd = redis_fd(w->session.redis);
        fds[1].events = (short)(POLLIN | (w->output_left ? POLLOUT : 0));
    }
    if (may_sleep(w)) {
        timeout = patience(w);
    }
    if (poll(fds, 2, timeout) < 0 && errno != EINTR) {
        return;
    }
    if ((fds[0].revents & POLLIN) != 0) {
        eventfd_t ignored;
        (void)eventfd_read(w->wake_fd, &ignored);
    }
    if (w->session.redis != NULL && (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        read_replies(w);
    }
}

/* Answer everybody, whatever the state of delivery. */
static void give_up(struct writer *w)
{
    fail_waiting(w, STORAGE_SHUTDOWN);
    delivery_answer_late(&w->delivery, INT64_MAX);
    limiter_answer_late(&w->limiter, INT64_MAX);
}

static void *writer_main(void *argument)
{
    struct writer *w = argument;
    for (;;) {
        work(w);
        pthread_mutex_lock(&w->lock);
        bool over = w->draining && w->busy && monotonic_ms() >= w->drain_deadline_ms;
        bool stop = w->stop;
        pthread_mutex_unlock(&w->lock);
        if (over || stop) {
            give_up(w);
        }
        if (stop) {
            return NULL;
        }
        if (over) {
            pthread_mutex_lock(&w->lock);
            w->busy = false;
            pthread_cond_broadcast(&w->idle);
            pthread_mutex_unlock(&w->lock);
        }
        wait_for_events(w);
    }
}

/* ---- life ---- */

static void writer_free(struct writer *w)
{
    session_close(&w->session);
    delivery_release(&w->delivery);
    flush_maker_free(w->maker);
    limiter_release(&w->limiter);
    free(w->order.runs);
    if (w->wake_fd >= 0) {
        close(w->wake_fd);
    }
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct writer *writer_start(struct core *core)
{
    struct writer *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->core = core;
    w->retry_ms = RETRY_MIN_MS;
    w->disconnected_ms = monotonic_ms();
    limiter_init(&w->limiter, core);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->maker = flush_maker_new(core);
    if (!delivery_init(&w->delivery, core) || w->maker == NULL || w->wake_fd < 0 ||
        pthread_create(&w->thread, NULL, writer_main, w) != 0) {
        writer_free(w);
        return NULL;
    }
    return w;
}

void writer_set_tick(struct writer *w, int64_t (*tick)(void *data, int64_t now_ms), void *data)
{
    pthread_mutex_lock(&w->lock);
    w->tick = tick;
    w->tick_data = data;
    pthread_mutex_unlock(&w->lock);
}

void writer_drain(struct writer *w, int64_t deadline_ms)
{
    pthread_mutex_lock(&w->lock);
    w->draining = true;
    w->drain_deadline_ms = deadline_ms;
    pthread_mutex_unlock(&w->lock);
    (void)eventfd_write(w->wake_fd, 1);
    pthread_mutex_lock(&w->lock);
    while (w->busy) {
        pthread_cond_wait(&w->idle, &w->lock); /* the thread keeps the deadline */
    }
    pthread_mutex_unlock(&w->lock);
}

void writer_stop(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
    (void)eventfd_write(w->wake_fd, 1);
    pthread_join(w->thread, NULL);
    writer_free(w);
}
