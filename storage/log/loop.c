/* loop.c - what the writer's thread does: requests into entries, entries to Redis, replies back. */
#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/log/acknowledge.h"
#include "storage/log/writer.h"
#include "storage/log/writer_state.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#define LOOK_MS   50   /* the thread looks so often after what does not wake it */
#define DIFFER_MS 1000 /* an idle thread looks so often at what others have found of the data */
#define HINT_MS   500  /* no reply for so long makes the topology look whether the server lives */

/* Events in entries whose answers, or replicas, are awaited.  A request with a key counts as one.
 */
static size_t events_under_way(const struct writer *w)
{
    size_t under_way = 0;
    for (const struct log_entry *e = append_under_way(&w->appender); e != NULL; e = e->next) {
        under_way += e->n_plain + e->n_keyed;
    }
    return under_way;
}

/* How many events must wait before an entry is made.  One while Redis is free.  While Redis works
 * on an entry, as many as that entry has: then Redis finds the next entry when it is done, and
 * neither entry is smaller for that.  SIZE_MAX: none is made. */
static size_t events_to_begin(const struct writer *w)
{
    size_t under_way = events_under_way(w);
    if (w->session.redis == NULL || !appender_has_room(&w->appender) ||
        unfolded_room(w->appender.unfolded, under_way) == 0) {
        return SIZE_MAX;
    }
    return under_way == 0 ? 1 : under_way;
}

static void begin_entry(struct writer *w)
{
    size_t room = unfolded_room(w->appender.unfolded, events_under_way(w));
    struct storage_job *jobs = writer_take_jobs(w, events_to_begin(w), room);
    if (jobs == NULL) {
        return;
    }
    int64_t now_ms = redis_clock_ms(&w->core->clock);
    if (!appender_add(&w->appender, jobs, deletions_arrival_ms(&w->core->deletions, now_ms))) {
        jobs_done(jobs, STORAGE_NOMEM);
    }
}

static void send_entries(struct writer *w, int64_t now_ms)
{
    w->lost = !appender_pump(&w->appender, &w->session, now_ms);
    if (!w->lost && w->appender.n_out > 0) {
        w->output_left = true;
        w->lost = !redis_queue(w->session.redis, &w->appender.out);
    }
    if (!w->lost && w->output_left) {
        w->lost = redis_send(w->session.redis, &w->output_left) != REDIS_OK_STATUS;
    }
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
        w->lost = !appender_take_reply(&w->appender, reply);
    }
}

/* ---- the loop ---- */

static void answer_late(struct writer *w, int64_t now_ms)
{
    int64_t waiting_ms = writer_fail_late(w, now_ms);
    int64_t under_way_ms = appender_answer_late(&w->appender, now_ms);
    w->late_ms = waiting_ms < under_way_ms ? waiting_ms : under_way_ms;
}

/* Must the thread answer all jobs now?  Its time to drain is over, or it is told to stop. */
static bool must_end(struct writer *w, bool *ret_stop)
{
    pthread_mutex_lock(&w->lock);
    bool over = w->draining && w->busy && monotonic_ms() >= w->drain_deadline_ms;
    *ret_stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    return over || *ret_stop;
}

bool writer_look(void *data)
{
    struct writer *w = data;
    bool stop;
    int64_t now_ms = monotonic_ms();
    answer_late(w, now_ms);
    return !must_end(w, &stop);
}

/* The data of a cluster was prepared without the servers that were away.  All are there now: one
 * writer prepares the rest with its next connection.  Or partition 0 is empty: it gives the secret
 * back, which nobody else may have. */
static bool must_prepare_rest(struct writer *w)
{
    struct writers_share *share = w->share;
    bool is_first_lost =
        atomic_load(&w->core->is_first_lost) && atomic_exchange(&w->core->is_first_lost, false);
    bool is_due = is_first_lost ||
                  (atomic_load(&share->is_partial) && topology_n_unserved(w->core->topology) == 0 &&
                      atomic_exchange(&share->is_partial, false));
    if (is_due) {
        atomic_store(&share->is_rest_due, true);
    }
    return is_due;
}

/* Must the connection be given up?  Also where another thread has found the data gone, or with
 * other settings than this process's.  The next connection prepares the data anew.  It decides
 * whether the settings are replaced, or no connection is had. */
static bool must_leave(struct writer *w, int64_t now_ms)
{
    return now_ms - w->heard_ms > REDIS_SILENCE_MS || atomic_load(&w->core->settings_differ) ||
           atomic_load(&w->core->emptied) || must_prepare_rest(w) ||
           !session_is_current(&w->session);
}

/* If no reply has come for long, have the topology look whether this is still the right server. */
static void hint_silence(struct writer *w, int64_t now_ms)
{
    if (now_ms - w->heard_ms > HINT_MS && now_ms - w->hinted_ms > HINT_MS) {
        w->hinted_ms = now_ms;
        server_silent(w->core, &w->session.server);
    }
}

/* The work of one turn, which waits only where it connects. */
static void writer_work(struct writer *w)
{
    int64_t now_ms = monotonic_ms();
    if (w->session.redis == NULL &&
        (now_ms >= w->next_connect_ms || w->servers_changes != servers_changes(w->core))) {
        writer_try_connect(w, now_ms);
        now_ms = monotonic_ms();
    }
    if (w->session.redis == NULL) {
        writer_lose_patience(w, now_ms);
    } else if (!w->lost) {
        w->heard_ms = w->appender.n_awaited == 0 ? now_ms : w->heard_ms;
        w->lost = must_leave(w, now_ms);
        hint_silence(w, now_ms);
        if (!w->lost) {
            begin_entry(w);
            send_entries(w, now_ms);
            writer_mind_stall(w, now_ms);
        }
    }
    acknowledge_or_keep(&w->appender);
    answer_late(w, now_ms); /* after sending: Redis works while clients are answered */
    appender_let_go(&w->appender);
    if (w->lost) {
        writer_disconnect(w, now_ms);
    }
}

/* May the thread sleep?  Then a job wakes it: the one with which enough wait, or one that is late
 * before the thread would look.  *ret_busy: jobs wait, or are under way. */
static bool may_sleep(struct writer *w, int64_t now_ms, bool *ret_busy)
{
    bool connected = w->session.redis != NULL;
    size_t begin = events_to_begin(w); /* behind "no room" unfolded_tell_room() wakes the thread */
    pthread_mutex_lock(&w->lock);
    bool sleep = w->queue.events < begin && !w->stop;
    w->wake_at = !sleep ? SIZE_MAX : !connected ? 1 : begin;
    w->look_ms = sleep ? now_ms + LOOK_MS : 0;
    w->late_ms = w->due_ms < w->late_ms ? w->due_ms : w->late_ms; /* some may just have come */
    if (w->queue.first == NULL && !appender_has_jobs(&w->appender)) {
        w->busy = false;
        pthread_cond_broadcast(&w->idle);
    }
    *ret_busy = w->busy;
    pthread_mutex_unlock(&w->lock);
    return sleep;
}

/* How long poll() may sleep, ms.  The thread looks again soon where requests have deadlines, where
 * entries are kept, while replies are awaited, because new requests do not wake it then, and where
 * there is no room, because nobody says when folds stall. */
static int writer_patience(struct writer *w)
{
    bool busy;
    int64_t now_ms = monotonic_ms();
    if (!may_sleep(w, now_ms, &busy)) {
        return 0;
    }
    int64_t due_ms =
        w->session.redis != NULL ? appender_due_ms(&w->appender, now_ms) : w->next_connect_ms;
    due_ms = w->late_ms < due_ms ? w->late_ms : due_ms;
    bool soon = busy || w->appender.n_awaited > 0 || unfolded_room(w->appender.unfolded, 0) == 0;
    int most_ms = soon ? LOOK_MS : DIFFER_MS;
    return due_ms <= now_ms ? 0 : due_ms - now_ms < most_ms ? (int)(due_ms - now_ms) : most_ms;
}

static void wait_for_events(struct writer *w)
{
    struct pollfd fds[2] = {{.fd = w->wake_fd, .events = POLLIN}, {.fd = -1}};
    if (w->session.redis != NULL) {
        fds[1].fd = redis_fd(w->session.redis);
        fds[1].events = (short)(POLLIN | (w->output_left ? POLLOUT : 0));
    }
    if (poll(fds, 2, writer_patience(w)) < 0 && errno != EINTR) {
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

/* Answer all jobs, whether their entries are in Redis or not. */
static void give_up(struct writer *w)
{
    writer_fail_waiting(w, STORAGE_SHUTDOWN);
    acknowledge_kept(&w->appender);
    (void)appender_answer_late(&w->appender, INT64_MAX);
}

void *writer_main(void *argument)
{
    struct writer *w = argument;
    for (;;) {
        bool stop;
        writer_work(w);
        bool over = must_end(w, &stop);
        if (over) {
            give_up(w);
        }
        if (stop) {
            return NULL;
        }
        wait_for_events(w); /* tells w->idle if nothing is left */
    }
}
