#include "storage/writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "storage/encode.h"
#include "storage/flush.h"
#include "storage/session.h"

#define FLUSHES_MAX      2 /* under way at once */
#define FLUSH_EVENTS_MAX 10000
#define CONNECT_MS       1000 /* one attempt to connect and prepare */
#define RETRY_MIN_MS     10
#define RETRY_MAX_MS     500
#define PATIENCE_MS      1000 /* without a connection for so long: refuse at once */
#define AGAIN_MS         20   /* after LOADING, BUSY and the like */
#define OUT_KEEP         (512 * 1024)

/* A part whose reply is awaited; replies come in the order of sending. */
struct sent {
    struct part **ring; /* grows; capacity is a power of two */
    size_t head, n, capacity;
};

struct writer {
    struct core *core;
    pthread_t thread;
    int wake_fd; /* eventfd */

    pthread_mutex_t lock; /* guards the next six */
    pthread_cond_t idle;
    struct storage_job *first, *last; /* waiting jobs, in order of arrival */
    size_t waiting_events;
    bool sleeping; /* the thread waits in poll() for jobs */
    bool busy;     /* jobs are waiting or under way */
    bool draining, stop;
    int64_t drain_deadline_ms;

    /* The thread's own. */
    struct session session;
    struct encoder *encoder;
    struct lane lanes[PARTITIONS_MAX];
    struct flush *flushes; /* oldest first, at most FLUSHES_MAX */
    unsigned n_flushes;
    struct sent sent;
    struct buffer out;
    bool prepared_once;
    bool output_left;        /* the socket did not take everything */
    bool lost;               /* give the connection up */
    int64_t disconnected_ms; /* since when; 0 while connected */
    int64_t next_connect_ms, retry_ms;
    int64_t hold_until_ms; /* send nothing before: Redis asked for patience */
};

/* ---- jobs
 * ------------------------------------------------------------------------------------------ */

static void append_job(struct writer *w, struct storage_job *job)
{
    job->next = NULL;
    if (w->last == NULL) {
        w->first = job;
    } else {
        w->last->next = job;
    }
    w->last = job;
    w->waiting_events += job->cost;
    atomic_store(&w->core->stats.queue_events, (int64_t)w->waiting_events);
}

bool writer_submit(struct writer *w, struct storage_job *job, enum storage_err *ret_err)
{
    bool wake = false;
    *ret_err = STORAGE_OK;
    pthread_mutex_lock(&w->lock);
    if (w->draining || w->stop) {
        *ret_err = STORAGE_SHUTDOWN;
    } else if (w->waiting_events > 0 &&
               w->waiting_events + job->cost > w->core->config.queue_events) {
        *ret_err = STORAGE_FULL;
    } else {
        append_job(w, job);
        w->busy = true;
        wake = w->sleeping;
        w->sleeping = false;
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

/* Cut as many jobs off the queue as one flush may take. */
static struct storage_job *take_jobs(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    struct storage_job *jobs = w->first;
    struct storage_job *end = NULL;
    size_t events = 0;
    while (w->first != NULL && (end == NULL || events + w->first->cost <= FLUSH_EVENTS_MAX)) {
        end = w->first;
        events += end->cost;
        w->first = end->next;
    }
    if (end != NULL) {
        end->next = NULL;
    }
    if (w->first == NULL) {
        w->last = NULL;
    }
    w->waiting_events -= events;
    atomic_store(&w->core->stats.queue_events, (int64_t)w->waiting_events);
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
    struct storage_job *late = NULL;
    struct storage_job **end = &late;
    pthread_mutex_lock(&w->lock);
    struct storage_job **at = &w->first;
    w->last = NULL;
    while (*at != NULL) {
        struct storage_job *job = *at;
        if (job->deadline_ms <= now_ms) {
            *at = job->next;
            w->waiting_events -= job->cost;
            *end = job;
            end = &job->next;
            job->next = NULL;
        } else {
            w->last = job;
            at = &job->next;
        }
    }
    atomic_store(&w->core->stats.queue_events, (int64_t)w->waiting_events);
    pthread_mutex_unlock(&w->lock);
    fail_jobs(late, STORAGE_LATE);
}

/* ---- flushes
 * ------------------------------------------------------------------------------------------ */

/* What became of the parts that a job's events are in. */
static enum storage_err verdict(const struct flush *flush, const struct storage_job *job)
{
    bool applied = false;
    bool nothing = false;
    for (size_t i = 0; i < flush->n_parts; i++) {
        const struct part *part = &flush->parts[i];
        if ((job->parts_all >> part->partition & 1) == 0) {
            continue;
        }
        bool held = part->state == PART_HELD && !part->in_doubt;
        bool refused = part->state == PART_OVER && part->fate != FATE_UNKNOWN;
        if (held || refused) {
            nothing = true;
        } else {
            applied = true; /* or may be */
        }
        if (!held && !refused && part->state != PART_OK) {
            return STORAGE_UNKNOWN;
        }
    }
    return !nothing ? STORAGE_OK : applied ? STORAGE_UNKNOWN : STORAGE_REFUSED;
}

static enum storage_err refusal(const struct writer *w, const struct flush *flush)
{
    if (atomic_load(&w->core->settings_differ)) {
        return STORAGE_CONFIG;
    }
    for (size_t i = 0; i < flush->n_parts; i++) {
        if (flush->parts[i].fate != FATE_NONE) {
            return flush->parts[i].fate == FATE_OOM ? STORAGE_OOM : STORAGE_REFUSED;
        }
    }
    return STORAGE_LATE;
}

static void answer_job(const struct writer *w, const struct flush *flush, struct storage_job *job)
{
    enum storage_err err = verdict(flush, job);
    job_done(job, err == STORAGE_REFUSED ? refusal(w, flush) : err);
}

static void finish_flush(struct writer *w, struct flush *flush)
{
    struct storage_stats *stats = &w->core->stats;
    struct storage_job *next;
    bool ok = true;
    for (size_t i = 0; i < flush->n_parts; i++) {
        ok = ok && flush->parts[i].state == PART_OK;
    }
    if (ok) {
        atomic_fetch_add(&stats->flushes, 1);
        atomic_fetch_add(&stats->flush_events, (int64_t)flush->n_rows);
        atomic_fetch_add(&stats->flush_scripts, (int64_t)flush->n_parts);
        atomic_fetch_add(&stats->flush_us, monotonic_us() - flush->sent_us);
    }
    for (struct storage_job *job = flush->jobs; job != NULL; job = next) {
        next = job->next;
        answer_job(w, flush, job);
    }
    flush_free(flush);
}

static bool is_finished(const struct flush *flush)
{
    bool open = false;
    for (size_t i = 0; i < flush->n_parts; i++) {
        const struct part *part = &flush->parts[i];
        if (part->state == PART_SENT || (part->state == PART_HELD && part->in_doubt)) {
            return false;
        }
        open = open || part->state == PART_HELD;
    }
    return !open || flush->jobs == NULL; /* nobody waits for what was never applied */
}

/* Take the flushes that are done with out of the lanes and off the list. */
static struct flush *take_finished(struct writer *w)
{
    struct flush *finished = NULL;
    struct flush **end = &finished;
    struct flush **at = &w->flushes;
    while (*at != NULL) {
        struct flush *flush = *at;
        if (!is_finished(flush)) {
            at = &flush->next;
            continue;
        }
        *at = flush->next;
        w->n_flushes--;
        flush->next = NULL;
        *end = flush;
        end = &flush->next;
        for (size_t i = 0; i < flush->n_parts; i++) {
            lane_remove(&w->lanes[flush->parts[i].partition], &flush->parts[i]);
        }
    }
    return finished;
}

static void finish_flushes(struct writer *w, struct flush *finished)
{
    while (finished != NULL) {
        struct flush *next = finished->next;
        finish_flush(w, finished);
        finished = next;
    }
}

/* Jobs under way whose time is up are answered; their events are delivered all the same. */
static void answer_late(struct writer *w, int64_t now_ms)
{
    for (struct flush *flush = w->flushes; flush != NULL; flush = flush->next) {
        struct storage_job **at = &flush->jobs;
        while (*at != NULL) {
            struct storage_job *job = *at;
            if (job->deadline_ms > now_ms) {
                at = &job->next;
                continue;
            }
            *at = job->next;
            answer_job(w, flush, job);
        }
    }
}

static void start_flush(struct writer *w)
{
    struct storage_job *jobs = take_jobs(w);
    if (jobs == NULL) {
        return;
    }
    struct flush *flush = flush_make(w->core, jobs, redis_clock_ms(&w->core->clock));
    if (flush == NULL) {
        fail_jobs(jobs, STORAGE_NOMEM);
        return;
    }
    flush->sent_us = monotonic_us();
    struct flush **end = &w->flushes;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = flush;
    w->n_flushes++;
    for (size_t i = 0; i < flush->n_parts; i++) {
        lane_append(&w->lanes[flush->parts[i].partition], &flush->parts[i]);
    }
}

/* ---- sending
 * ------------------------------------------------------------------------------------------ */

static bool push_sent(struct sent *sent, struct part *part)
{
    if (sent->n == sent->capacity) {
        size_t capacity = sent->capacity == 0 ? 64 : sent->capacity * 2;
        struct part **ring = malloc(capacity * sizeof(*ring));
        if (ring == NULL) {
            return false;
        }
        for (size_t i = 0; i < sent->n; i++) {
            ring[i] = sent->ring[(sent->head + i) & (sent->capacity - 1)];
        }
        free(sent->ring);
        *sent = (struct sent){.ring = ring, .n = sent->n, .capacity = capacity};
    }
    sent->ring[(sent->head + sent->n++) & (sent->capacity - 1)] = part;
    return true;
}

static struct part *pop_sent(struct sent *sent)
{
    struct part *part = sent->ring[sent->head];
    sent->head = (sent->head + 1) & (sent->capacity - 1);
    sent->n--;
    return part;
}

/* Encode and queue what the lanes have to send. */
static void pump(struct writer *w, int64_t now_ms)
{
    if (now_ms < w->hold_until_ms) {
        return;
    }
    buffer_clear(&w->out, OUT_KEEP);
    for (unsigned p = 0; p < w->core->partitions.n; p++) {
        struct part *part = lane_next(&w->lanes[p]);
        if (part == NULL) {
            continue;
        }
        struct partition_view view = core_view(w->core, p);
        for (; part != NULL; part = lane_next(&w->lanes[p])) {
            if (!encode_part(w->encoder, part, &view, &w->session.scripts, &w->out) ||
                !push_sent(&w->sent, part)) {
                w->lost = true; /* out of memory: what is half encoded must not be sent */
                return;
            }
            lane_sent(&w->lanes[p], part);
        }
    }
    if (w->out.n > 0) {
        w->lost = !redis_queue(w->session.redis, &w->out);
        w->output_left = true;
    }
}

/* ---- replies
 * ------------------------------------------------------------------------------------------ */

/* An error reply: the script did not run, or (unknown errors) may have broken off. */
static enum part_answer error_answer(
    struct writer *w, const struct part *part, const struct reply *reply)
{
    atomic_fetch_add(&w->core->stats.redis_errors, 1);
    if (reply_is_error(reply, "NOSCRIPT") || reply_is_error(reply, "READONLY") ||
        reply_is_error(reply, "NOAUTH")) {
        w->lost = true; /* a new connection loads the scripts and looks who is there */
        return ANSWER_AGAIN;
    }
    if (reply_is_error(reply, "LOADING") || reply_is_error(reply, "BUSY") ||
        reply_is_error(reply, "MASTERDOWN") || reply_is_error(reply, "TRYAGAIN") ||
        reply_is_error(reply, "CLUSTERDOWN")) {
        w->hold_until_ms = monotonic_ms() + AGAIN_MS;
        return ANSWER_AGAIN;
    }
    core_notice(w->core, STORAGE_REFUSING, reply->text.p);
    enum part_answer answer = ANSWER_FAILED;
    if (reply_is_error(reply, "OOM")) {
        atomic_fetch_add(&w->core->stats.redis_oom, 1);
        answer = ANSWER_OOM;
    } else if (reply_is_error(reply, "MISCONF") || reply_is_error(reply, "NOREPLICAS") ||
               reply_is_error(reply, "NOPERM")) {
        answer = ANSWER_REFUSED;
    }
    if (answer != ANSWER_FAILED && part->in_doubt) {
        w->hold_until_ms = monotonic_ms() + AGAIN_MS; /* it is sent until it is answered */
    }
    return answer;
}

static enum part_answer replan(struct writer *w, const struct part *part, const struct reply *reply)
{
    struct partition_view view = core_view(w->core, part->partition);
    atomic_fetch_add(&w->core->stats.replanned, 1);
    if (reply->n < 4 || !rollup_state_parse(reply->items[3].text, &view.state)) {
        w->lost = true;
        return ANSWER_AGAIN;
    }
    view.known = true;
    core_set_view(w->core, part->partition, &view);
    return ANSWER_AGAIN;
}

static enum part_answer read_answer(struct writer *w, struct part *part, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR) {
        return error_answer(w, part, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n < 3) {
        w->lost = true;
        return ANSWER_FAILED;
    }
    core_time_seen(
        w->core, reply_integer(&reply->items[1], 0) * 1000000 + reply_integer(&reply->items[2], 0));
    switch (reply_integer(&reply->items[0], -1)) {
    case 0:
        encode_applied(w->encoder, part);
        return ANSWER_OK;
    case 1:
        return replan(w, part, reply);
    case 2:
        return ANSWER_GAP;
    case 3:
        if (part->in_doubt) {
            return ANSWER_STALE;
        }
        /* Its only copy did nothing: Redis's clock was set forward since the flush was made. */
        part->gen_ms = redis_clock_ms(&w->core->clock);
        return ANSWER_AGAIN;
    case 4: /* other settings, or (5) emptied under our feet: look again, from the start */
    case 5:
    default:
        w->lost = true;
        return ANSWER_AGAIN;
    }
}

static void read_replies(struct writer *w)
{
    if (redis_receive(w->session.redis) != REDIS_OK_STATUS) {
        w->lost = true;
        return;
    }
    for (;;) {
        const struct reply *reply = NULL;
        if (redis_next(w->session.redis, &reply) != REDIS_OK_STATUS) {
            w->lost = true;
        }
        if (reply == NULL || w->sent.n == 0) {
            w->lost = w->lost || reply != NULL; /* an answer nobody asked for */
            return;
        }
        struct part *part = pop_sent(&w->sent);
        lane_answered(&w->lanes[part->partition], part, read_answer(w, part, reply));
    }
}

/* ---- the connection
 * --------------------------------------------------------------------------------------- */

static void disconnect(struct writer *w, int64_t now_ms)
{
    session_close(&w->session);
    encode_forget(w->encoder);
    atomic_fetch_add(&w->core->stats.resent, (int64_t)w->sent.n);
    w->sent.n = 0;
    for (unsigned p = 0; p < w->core->partitions.n; p++) {
        lane_lost(&w->lanes[p]);
    }
    w->lost = false;
    w->output_left = false;
    w->disconnected_ms = now_ms;
    w->next_connect_ms = now_ms;
    w->retry_ms = RETRY_MIN_MS;
    w->hold_until_ms = 0;
    atomic_store(&w->core->ready, false);
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
    if (w->first != NULL) {
        next = w->first->deadline_ms;
    }
    if (w->draining && w->busy && w->drain_deadline_ms < next) {
        next = w->drain_deadline_ms;
    }
    pthread_mutex_unlock(&w->lock);
    for (const struct flush *flush = w->flushes; flush != NULL; flush = flush->next) {
        if (flush->jobs != NULL && flush->jobs->deadline_ms < next) {
            next = flush->jobs->deadline_ms;
        }
    }
    return next;
}

static void try_connect(struct writer *w, int64_t now_ms)
{
    char error[160] = "";
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
            atomic_store(&w->core->refusing, false);
            atomic_store(&w->core->ready, true);
            atomic_store(&w->core->stats.redis_connected, 1);
            core_notice(w->core, STORAGE_CONNECTED, "");
            return;
        }
        session_close(&w->session);
    }
    now_ms = monotonic_ms();
    w->next_connect_ms = now_ms + w->retry_ms;
    w->retry_ms = w->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : w->retry_ms * 2;
    core_notice(w->core,
        atomic_load(&w->core->settings_differ) ? STORAGE_SETTINGS_DIFFER : STORAGE_CONNECT_FAILED,
        error);
}

/* Without a connection for too long: answer who waits, and refuse who comes, at once. */
static void lose_patience(struct writer *w, int64_t now_ms)
{
    if (now_ms - w->disconnected_ms < PATIENCE_MS && !atomic_load(&w->core->settings_differ)) {
        return;
    }
    enum storage_err err = atomic_load(&w->core->settings_differ) ? STORAGE_CONFIG : STORAGE_DOWN;
    atomic_store(&w->core->refusing, true);
    for (struct storage_job *jobs = take_jobs(w); jobs != NULL; jobs = take_jobs(w)) {
        fail_jobs(jobs, err);
    }
}

/* ---- the loop
 * ------------------------------------------------------------------------------------------ */

/* One turn's work, without waiting. */
static void work(struct writer *w)
{
    int64_t now_ms = monotonic_ms();
    if (w->session.redis == NULL && now_ms >= w->next_connect_ms) {
        try_connect(w, now_ms);
        now_ms = monotonic_ms();
    }
    struct flush *finished = take_finished(w);
    if (w->session.redis == NULL) {
        lose_patience(w, now_ms);
    } else {
        if (w->n_flushes < FLUSHES_MAX) {
            start_flush(w);
        }
        pump(w, now_ms);
        if (w->output_left && !w->lost) {
            w->lost = redis_send(w->session.redis, &w->output_left) != REDIS_OK_STATUS;
        }
    }
    finish_flushes(w, finished); /* after sending: Redis works while the clients are answered */
    fail_late(w, now_ms);
    answer_late(w, now_ms);
    if (w->lost) {
        disconnect(w, now_ms);
    }
}

/* How long poll() may sleep, in ms; -1 for ever. */
static int patience(struct writer *w)
{
    int64_t now_ms = monotonic_ms();
    int64_t wake_ms = next_deadline_ms(w);
    if (w->session.redis == NULL && w->next_connect_ms < wake_ms) {
        wake_ms = w->next_connect_ms;
    }
    if (w->hold_until_ms > now_ms && w->flushes != NULL && w->hold_until_ms < wake_ms) {
        wake_ms = w->hold_until_ms;
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
    bool can_start = w->session.redis != NULL && w->n_flushes < FLUSHES_MAX;
    bool sleep = !(can_start && w->first != NULL) && !w->stop;
    w->sleeping = sleep && (can_start || w->session.redis == NULL);
    if (w->first == NULL && w->flushes == NULL) {
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
    for (struct storage_job *jobs = take_jobs(w); jobs != NULL; jobs = take_jobs(w)) {
        fail_jobs(jobs, STORAGE_SHUTDOWN);
    }
    answer_late(w, INT64_MAX);
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

/* ---- life
 * ------------------------------------------------------------------------------------------------
 */

static void writer_free(struct writer *w)
{
    struct flush *next;
    for (struct flush *flush = w->flushes; flush != NULL; flush = next) {
        next = flush->next;
        flush_free(flush);
    }
    session_close(&w->session);
    encoder_free(w->encoder);
    free(w->sent.ring);
    buffer_release(&w->out);
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
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->encoder = encoder_new(core);
    for (unsigned p = 0; p < core->partitions.n; p++) {
        lane_init(&w->lanes[p]);
    }
    if (w->wake_fd < 0 || w->encoder == NULL ||
        pthread_create(&w->thread, NULL, writer_main, w) != 0) {
        writer_free(w);
        return NULL;
    }
    return w;
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
