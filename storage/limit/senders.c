#include "storage/limit/senders.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/cluster/redirect.h"
#include "storage/job/queue.h"
#include "storage/limit/guard.h"
#include "storage/limit/limiter.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/server.h"
#include "storage/session/sessions.h"

#define SENDERS    16 /* threads in a cluster */
#define CONNECT_MS 500
#define AGAIN_MS   20
#define ASIDE_MS   500

struct sender {
    struct limit_senders *all;
    pthread_t thread;
    bool is_started;

    pthread_mutex_t lock; /* guards the next block */
    pthread_cond_t work, idle;
    struct job_queue queue; /* a job's cost is 1 */
    bool is_busy, draining, stop;

    /* The thread's own. */
    struct sessions sessions;
    struct limiter limiter; /* of the batch at hand, and of what is to be sent again */
    struct session aside;   /* to the server that an ASK has named */
    struct job_queue due;   /* to be sent now */
    int64_t again_ms;       /* when the jobs of limiter.again are due */
    int64_t tick_ms;        /* when the guard wants to be looked after */
};

struct limit_senders {
    struct core *core;
    struct guard *guard; /* NULL: there is none */
    unsigned n;
    struct sender senders[SENDERS];
};

static unsigned partition_of_job(const struct core *core, const struct storage_job *job)
{
    struct slice who = job->op == STORAGE_LIMIT_RESET ? job->u.limit_reset.key : job->u.limit.key;
    return key_limit_partition(&core->partitions, who);
}

/* The session of the server of @partition, connected; NULL: there is none now. */
static struct session *session_for(struct sender *s, unsigned partition)
{
    int64_t deadline_ms = monotonic_ms() + CONNECT_MS;
    struct session *session = sessions_get(&s->sessions, partition, deadline_ms);
    if (session != NULL) {
        session_close_if_dead(session);
    }
    return session == NULL || session->redis != NULL
               ? session
               : sessions_get(&s->sessions, partition, deadline_ms);
}

/* ---- what a server does not carry out ---- */

/* Have the first job under way carried out by the server that ASK has named.  NULL: there is no
 * reply; *ret_lost tells whether the script was sent all the same. */
static const struct reply *ask_aside(
    struct sender *s, const struct redis_address *address, bool *ret_lost)
{
    struct core *core = s->all->core;
    struct session *session = &s->aside;
    const struct reply *reply = NULL;
    struct buffer out;
    int64_t deadline_ms = monotonic_ms() + ASIDE_MS;
    session_close_if_dead(session);
    if (session->redis == NULL || !redis_address_equal(&session->server.node.address, address)) {
        session_close(session);
        session->server = (struct server){.is_named = true};
        session->server.node.address = *address;
        if (!session_open(session, core, deadline_ms)) {
            return NULL;
        }
    }
    struct storage_job *job = limiter_first(&s->limiter);
    if (job == NULL) {
        return NULL; /* the job was ended, late, while the connection was made */
    }
    buffer_init(&out);
    resp_command(&out, "ASKING", NULL);
    limiter_write_one(core, session, job, &out);
    bool left = false;
    bool sent = redis_queue(session->redis, &out);
    buffer_release(&out);
    if (sent && (redis_send(session->redis, &left) != REDIS_OK_STATUS ||
                    redis_await(session->redis, deadline_ms, &reply) != REDIS_OK_STATUS ||
                    redis_await(session->redis, deadline_ms, &reply) != REDIS_OK_STATUS)) {
        session_lost(session);
        *ret_lost = true;
        return NULL;
    }
    return sent ? reply : NULL;
}

/* Judge @reply, which came for the first job under way.  Returns the reply to take for that job. */
static const struct reply *sender_judge(
    struct sender *s, struct session *session, const struct reply *reply)
{
    static const struct reply later = {.type = REPLY_ERROR, .text = {"TRYAGAIN", 8}};
    static const struct reply unknown = {.type = REPLY_ERROR, .text = {"ERR no reply", 12}};
    struct redis_address to;
    struct storage_job *job = limiter_first(&s->limiter);
    if (reply->type != REPLY_ERROR) {
        return reply;
    }
    if (job != NULL) {
        server_refused(s->all->core, &session->server, partition_of_job(s->all->core, job), reply);
    }
    switch (redirect_parse(reply->text, session->server.node.address.host, &to)) {
    case REDIRECT_MOVED:
        return &later;
    case REDIRECT_ASK: {
        bool lost = false;
        const struct reply *there = to.host[0] == '\0' ? NULL : ask_aside(s, &to, &lost);
        bool moved = there != NULL && there->type == REPLY_ERROR && reply_is_error(there, "MOVED");
        return lost ? &unknown : there == NULL || moved ? &later : there;
    }
    case REDIRECT_NONE:
        break;
    }
    return reply;
}

/* ---- a batch ---- */

/* Send @jobs over @session, and take their replies.  Meanwhile sender_look() ends late jobs. */
static void run_batch(struct sender *s, struct session *session, struct storage_job *jobs)
{
    struct limiter *l = &s->limiter;
    bool left = false;
    if (!limiter_write(l, session, jobs) || !redis_queue(session->redis, &l->out)) {
        limiter_end(l, STORAGE_NOMEM);
        return;
    }
    bool ok = redis_send(session->redis, &left) == REDIS_OK_STATUS;
    while (ok && limiter_awaits(l)) {
        const struct reply *reply = NULL;
        ok = redis_await(session->redis, INT64_MAX, &reply) == REDIS_OK_STATUS &&
             limiter_take_reply(l, sender_judge(s, session, reply));
    }
    if (!ok) {
        session_lost(session);
        limiter_end(l, STORAGE_UNKNOWN);
    }
}

/* Put @job off, because no server can be had for it now; end it if that has been so for long. */
static void put_off(struct sender *s, struct storage_job *job, unsigned partition)
{
    struct core *core = s->all->core;
    char why[sizeof(job->detail)];
    bool is_away = server_away_ms(core, partition, why, sizeof(why)) > SERVER_PATIENCE_MS ||
                   atomic_load(&core->refusing);
    enum storage_err err = core_refuses(core);
    if (err == STORAGE_OK && !is_away) {
        job_queue_append(&s->limiter.again, job);
        return;
    }
    memcpy(job->detail, why, sizeof(why));
    job_done(job, err != STORAGE_OK ? err : STORAGE_DOWN);
}

/* Send the first job that is due, and with it those that go to the same server. */
static void send_some(struct sender *s)
{
    struct core *core = s->all->core;
    struct job_queue batch = {0};
    unsigned partition = partition_of_job(core, s->due.first);
    uint64_t server = server_hash(core, partition);
    struct session *session = session_for(s, partition);
    struct storage_job *next;
    for (struct storage_job *job = job_queue_take(&s->due, SIZE_MAX); job != NULL; job = next) {
        unsigned p = partition_of_job(core, job);
        next = job->next;
        if (server_hash(core, p) != server || batch.events >= LIMITER_JOBS_MAX) {
            job_queue_append(&s->due, job);
        } else if (session == NULL) {
            put_off(s, job, p);
        } else {
            job_queue_append(&batch, job);
        }
    }
    if (batch.first != NULL) {
        run_batch(s, session, batch.first);
    }
}

/* ---- the thread ---- */

/* End late jobs: those at hand, and those that wait for a lease of the guard's. */
static void answer_late(struct sender *s)
{
    int64_t now_ms = monotonic_ms();
    jobs_done(job_queue_take_late(&s->due, now_ms), STORAGE_LATE);
    limiter_answer_late(&s->limiter, now_ms);
    s->tick_ms = s->all->guard != NULL ? guard_tick(s->all->guard, now_ms) : INT64_MAX;
}

/* End late jobs while the thread waits for a server; a redis_look. */
static bool sender_look(void *data)
{
    struct sender *s = data;
    pthread_mutex_lock(&s->lock);
    struct storage_job *late = job_queue_take_late(&s->queue, monotonic_ms());
    bool go_on = !s->stop;
    pthread_mutex_unlock(&s->lock);
    jobs_done(late, STORAGE_LATE);
    answer_late(s);
    return go_on;
}

/* Wait until there is something to do: jobs, or the guard's tick.  False: the end. */
static bool next_jobs(struct sender *s, struct storage_job **ret)
{
    pthread_mutex_lock(&s->lock);
    for (;;) {
        int64_t now_ms = monotonic_ms();
        bool again = s->limiter.again.first != NULL;
        int64_t wake_ms = again && s->again_ms < s->tick_ms ? s->again_ms : s->tick_ms;
        if (s->stop || s->queue.first != NULL || now_ms >= wake_ms) {
            break;
        }
        s->is_busy = again;
        if (!again) {
            pthread_cond_broadcast(&s->idle);
        }
        cond_wait_until_ms(&s->work, &s->lock, wake_ms);
    }
    s->is_busy = true;
    bool go_on = !s->stop;
    *ret = go_on ? job_queue_take(&s->queue, SIZE_MAX) : NULL;
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

/* Make @jobs due, behind those that have waited long enough. */
static void make_due(struct sender *s, struct storage_job *jobs)
{
    int64_t now_ms = monotonic_ms();
    if (now_ms >= s->again_ms) {
        s->due = s->limiter.again;
        s->limiter.again = (struct job_queue){.first = NULL};
        s->again_ms = now_ms + AGAIN_MS;
    }
    for (struct storage_job *next; jobs != NULL; jobs = next) {
        next = jobs->next;
        job_queue_append(&s->due, jobs);
    }
}

static void *sender_main(void *argument)
{
    struct sender *s = argument;
    struct storage_job *jobs;
    while (next_jobs(s, &jobs)) {
        make_due(s, jobs);
        for (answer_late(s); s->due.first != NULL; answer_late(s)) {
            send_some(s);
        }
    }
    return NULL;
}

/* ---- life ---- */

struct limit_senders *limit_senders_start(struct core *core, struct guard *guard)
{
    struct limit_senders *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return NULL;
    }
    all->core = core;
    all->guard = guard;
    all->n = core->is_spread ? SENDERS : 1;
    bool ok = true;
    for (unsigned i = 0; ok && i < all->n; i++) {
        struct sender *s = &all->senders[i];
        s->all = all;
        s->tick_ms = INT64_MAX;
        mutex_init(&s->lock);
        cond_init(&s->work);
        cond_init(&s->idle);
        sessions_init(&s->sessions, core, (struct redis_look){sender_look, s, REDIS_SILENCE_MS});
        s->aside.look = (struct redis_look){sender_look, s, 0};
        limiter_init(&s->limiter, core);
        s->is_started = pthread_create(&s->thread, NULL, sender_main, s) == 0;
        ok = s->is_started;
    }
    if (!ok) {
        limit_senders_stop(all);
        return NULL;
    }
    return all;
}

bool limit_senders_submit(
    struct limit_senders *all, struct storage_job *job, enum storage_err *ret_err)
{
    uint64_t server = server_hash(all->core, partition_of_job(all->core, job));
    struct sender *s = &all->senders[server % all->n];
    job->cost = 1;
    pthread_mutex_lock(&s->lock);
    *ret_err = s->draining || s->stop                              ? STORAGE_SHUTDOWN
               : s->queue.events >= all->core->config.queue_events ? STORAGE_FULL
                                                                   : STORAGE_OK;
    if (*ret_err == STORAGE_OK) {
        job_queue_append(&s->queue, job);
        s->is_busy = true;
    }
    pthread_mutex_unlock(&s->lock);
    pthread_cond_signal(&s->work); /* not under the lock, for which the thread would wait at once */
    atomic_fetch_add(&all->core->stats.queue_refused, *ret_err == STORAGE_FULL ? 1 : 0);
    return *ret_err == STORAGE_OK;
}

void limit_senders_drain(struct limit_senders *all, int64_t deadline_ms)
{
    for (unsigned i = 0; i < all->n; i++) {
        struct sender *s = &all->senders[i];
        pthread_mutex_lock(&s->lock);
        s->draining = true;
        while (s->is_busy && monotonic_ms() < deadline_ms) {
            cond_wait_until_ms(&s->idle, &s->lock, deadline_ms);
        }
        struct storage_job *left = job_queue_take(&s->queue, SIZE_MAX);
        s->stop = true; /* ends the thread after the batch at hand */
        pthread_cond_signal(&s->work);
        pthread_mutex_unlock(&s->lock);
        jobs_done(left, STORAGE_SHUTDOWN);
    }
    for (unsigned i = 0; i < all->n; i++) {
        struct sender *s = &all->senders[i];
        pthread_join(s->thread, NULL);
        s->is_started = false;
        jobs_done(job_queue_take(&s->limiter.again, SIZE_MAX), STORAGE_SHUTDOWN);
    }
}

void limit_senders_stop(struct limit_senders *all)
{
    for (unsigned i = 0; i < all->n; i++) {
        struct sender *s = &all->senders[i];
        if (s->all == NULL) {
            continue; /* this sender was not begun */
        }
        if (s->is_started) {
            pthread_mutex_lock(&s->lock);
            s->stop = true;
            pthread_cond_signal(&s->work);
            pthread_mutex_unlock(&s->lock);
            pthread_join(s->thread, NULL);
        }
        sessions_release(&s->sessions);
        session_close(&s->aside);
        limiter_release(&s->limiter);
        pthread_cond_destroy(&s->idle);
        pthread_cond_destroy(&s->work);
        pthread_mutex_destroy(&s->lock);
    }
    free(all);
}
