#include "storage/read/settled.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/asks.h"
#include "storage/session/server.h"

#define TEXT_KEPT    4096   /* bytes of a print's text whose memory is kept */
#define COUNT_MS     250    /* then the cursors are read again: another process may have counted */
#define PAUSE_MAX_MS 16     /* the longest pause between two looks */
#define FOLDING_US   100000 /* other questions, so soon after a fold, will have another fold made */
/* The wait ends so long before the deadline: a reading that the deadline cuts off would cost the
 * connection. */
#define MARGIN_MS 20

void settled_release(struct settled *settled)
{
    log_progress_release(&settled->progress);
    buffer_release(&settled->text);
    free(settled->missing);
    *settled = (struct settled){.missing = NULL};
}

bool settled_still(const struct session *session, int64_t since_us)
{
    const struct dispatcher *dispatcher = session->dispatcher;
    return dispatcher != NULL && dispatcher->has_recorded
               ? !dispatcher->has_strayed
               : session_stands_since(session) == since_us;
}

/* Does @session still stand?  With several servers the reading of the question itself notices a
 * server that has failed. */
static bool session_stands(struct session *session)
{
    return session->dispatcher != NULL || session_is_current(session);
}

/* What one wait needs. */
struct wait {
    struct settled *settled;
    struct core *core;
    struct session *session;
    struct storage_job *job;
    bool *ret_lost;
    int64_t begun_ms;
    int64_t counts_us; /* as far as known, folds that begin from then on count what is missing */
    int64_t age_ms, aged_ms; /* how old the oldest missing entry was at aged_ms; 0: not asked */
    enum storage_err why;    /* how the last attempt to count has ended */
};

/* After the first reading: note the logs of which something is missing. */
static enum storage_err find_missing(struct settled *s)
{
    s->n = 0;
    for (size_t i = 0; i < s->progress.logs.n; i++) {
        const struct log_head *log = &s->progress.logs.all[i];
        if (log->counted >= log->n) {
            continue;
        }
        if (!array_reserve(&s->missing, &s->capacity, s->n, sizeof(*s->missing))) {
            return STORAGE_NOMEM;
        }
        s->missing[s->n++] = *log;
    }
    return STORAGE_OK;
}

/* After a later reading: keep the logs of which something is still missing.  A log that is not open
 * any more was closed, so all of it is counted. */
static void keep_missing(struct settled *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct log_head *log = heads_find(&s->progress.logs, s->missing[i].id, i);
        if (log != NULL && log->counted < s->missing[i].n) {
            s->missing[kept++] = s->missing[i];
        }
    }
    s->n = kept;
}

static bool take_age(void *data, size_t i, const struct reply *reply)
{
    struct wait *w = data;
    int64_t age_ms = reply->type == REPLY_INTEGER ? reply->integer : -1;
    if (age_ms < 0) { /* unknown: it is as old as the last news of the log's writer, or older */
        age_ms = redis_clock_ms(&w->core->clock) - w->settled->missing[i].time_ms;
    }
    w->age_ms = age_ms > w->age_ms ? age_ms : w->age_ms;
    return true;
}

/* Ask how old the oldest missing entry is, once a wait. */
static enum storage_err ask_age(struct wait *w)
{
    struct settled *s = w->settled;
    struct asks asks = asks_to(w->session);
    for (size_t i = 0; i < s->n; i++) {
        const struct log_head *log = heads_find(&s->progress.logs, s->missing[i].id, i);
        unsigned partition = core_log_partition(w->core, s->missing[i].place);
        struct buffer *out = asks_begin(&asks, partition);
        struct key key;
        script_head(out, &w->session->scripts, SCRIPT_LOG_AGE, 1, 1);
        resp_slice(out, key_fixed(&key, w->core->partitions.tag[partition],
                            "log:", slice_of(s->missing[i].id)));
        resp_decimal(out, (int64_t)log->counted + 1);
    }
    w->aged_ms = monotonic_ms();
    enum redis_status status = asks_run(&asks, w->job->deadline_ms, take_age, w);
    *w->ret_lost = *w->ret_lost || status != REDIS_OK_STATUS;
    return status == REDIS_OK_STATUS ? STORAGE_OK : STORAGE_DOWN;
}

/* Read the heads and cursors, and find what is missing. */
static enum storage_err read_again(struct wait *w, bool first)
{
    struct settled *s = w->settled;
    struct dispatcher *dispatcher = w->session->dispatcher;
    if (dispatcher != NULL) {
        dispatcher_record(dispatcher);
    }
    s->progress.remembers = true;
    enum storage_err err =
        log_progress_read(&s->progress, w->core, w->session, w->job->deadline_ms, w->ret_lost);
    if (dispatcher != NULL) {
        dispatcher_recorded(dispatcher);
        /* If some cursors were not read, it is not recorded which server would have answered. */
        dispatcher->has_recorded = s->progress.is_whole;
    }
    if (err != STORAGE_OK) {
        (void)snprintf(w->job->detail, sizeof(w->job->detail), "%s", s->progress.detail);
        return err;
    }
    if (first) {
        return find_missing(s);
    }
    keep_missing(s);
    return s->n > 0 && w->aged_ms == 0 ? ask_age(w) : STORAGE_OK;
}

static enum storage_err give_up(struct wait *w)
{
    int64_t now_ms = monotonic_ms();
    int64_t age_ms = now_ms - w->begun_ms;
    bool told = w->why != STORAGE_OK && w->why != STORAGE_BEHIND && w->why != STORAGE_LATE;
    if (w->aged_ms != 0 && w->age_ms + now_ms - w->aged_ms > age_ms) {
        age_ms = w->age_ms + now_ms - w->aged_ms;
    }
    if (w->why == STORAGE_STATE_LOST) {
        (void)core_lost_text(w->core, w->job->detail);
        return w->why;
    }
    char slot[OPEN_SLOT_TEXT];
    const char *why = told ? storage_err_text(w->why) : "";
    if (core_open_slot_text(w->core, slot)) {
        why = slot;
    }
    (void)snprintf(w->job->detail, sizeof(w->job->detail), "the log is %lld s behind%s%s",
        (long long)(age_ms + 999) / 1000, why[0] != '\0' ? ": " : "", why);
    return STORAGE_BEHIND;
}

bool settled_is_known(
    const struct core *core, struct session *session, const struct storage_job *job)
{
    int64_t settled_us = atomic_load(&core->settled_us);
    return job->arrived_us < settled_us && session_stands_since(session) < settled_us &&
           session_stands(session);
}

void settled_joined(struct settled *settled, const struct storage_job *job)
{
    struct settled_moment *moment = &settled->moment;
    moment->is_known = moment->is_known && job->arrived_us < moment->read_us;
}

enum settled_outlook settled_outlook(
    const struct core *core, struct session *session, const struct storage_job *job)
{
    int64_t settled_us = atomic_load(&core->settled_us);
    int64_t now_us = monotonic_us();
    bool is_folding =
        atomic_load(&core->stats.log_events) > 0 ||
        (atomic_load(&core->questions) > 0 && now_us - atomic_load(&core->folded_us) < FOLDING_US);
    if (!is_folding || now_us - settled_us >= SETTLED_NEAR_MS * 1000 || !session_stands(session)) {
        return SETTLED_BY_READER;
    }
    return job->arrived_us < settled_us ? SETTLED_NOW : SETTLED_NEAR;
}

/* Have folds count what is missing.  True: everything that the job needs is known to be counted. */
static bool catch_up(struct wait *w)
{
    int64_t until_ms = monotonic_ms() + COUNT_MS;
    int64_t last_ms = w->job->deadline_ms - MARGIN_MS;
    until_ms = until_ms < last_ms ? until_ms : last_ms;
    w->why = core_catch_up(w->core, w->counts_us, until_ms);
    if (w->why == STORAGE_OK && settled_is_known(w->core, w->session, w->job)) {
        return true;
    }
    if (w->why == STORAGE_OK) { /* Redis may have gone back since: another round is needed */
        w->counts_us = monotonic_us();
    }
    return false;
}

/* All was counted at the first look, which began at @read_us: note what the look has seen. */
static void note_moment(struct wait *w, int64_t read_us)
{
    struct settled *s = w->settled;
    struct buffer *text = &s->text;
    const struct log_progress *p = &s->progress;
    if (w->core->cache == NULL || p->ids_n == 0) {
        return;
    }
    buffer_clear(text, TEXT_KEPT);
    buffer_append(text, p->ids, p->ids_n);
    buffer_append(text, &p->logs.n_closed, sizeof(p->logs.n_closed));
    for (size_t i = 0; i < p->logs.n; i++) {
        const struct log_head *head = &p->logs.all[i];
        buffer_append(text, head->id, LOG_ID_TEXT);
        buffer_append(text, head->era, LOG_ID_TEXT);
        buffer_append(text, &head->n, sizeof(head->n));
        buffer_append(text, &head->place, sizeof(head->place));
    }
    if (!text->failed) {
        s->moment = (struct settled_moment){.is_known = true,
            .print = cache_id(w->core->cache, text->p, text->n),
            .read_us = read_us,
            .minute = p->time_us / 60000000};
    }
}

/* Wait until nothing is missing any more.  *ret_all is true if everything is counted that the first
 * look has seen.  It is false if a round of folds has counted what was acknowledged before the job
 * came, which may be less. */
static enum storage_err await_folds(struct wait *w, bool *ret_all)
{
    int pause_ms = 0;
    struct storage_job *job = w->job;
    int64_t read_us = monotonic_us();
    enum storage_err err = read_again(w, true);
    *ret_all = true;
    if (err == STORAGE_OK && w->settled->n == 0) {
        note_moment(w, read_us);
    }
    while (err == STORAGE_OK && w->settled->n > 0) {
        if (catch_up(w)) {
            if (w->session->dispatcher != NULL) {
                w->session->dispatcher->has_recorded = false;
            }
            *ret_all = false;
            return STORAGE_OK;
        }
        if (w->why == STORAGE_STATE_LOST) { /* to wait would not help */
            return give_up(w);
        }
        /* If folds failed, or have not counted everything, another process may count the rest. */
        if (w->why != STORAGE_OK || pause_ms > 0) {
            (void)poll(NULL, 0, pause_ms);
        }
        pause_ms = pause_ms == 0 ? 1 : pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
        if (monotonic_ms() + MARGIN_MS >= job->deadline_ms) {
            return give_up(w);
        }
        err = read_again(w, false);
    }
    return err;
}

enum storage_err settled_await(struct settled *settled, struct core *core, struct session *session,
    struct storage_job *job, bool *ret_lost)
{
    int64_t now_us = monotonic_us();
    struct wait w = {.settled = settled,
        .core = core,
        .session = session,
        .job = job,
        .ret_lost = ret_lost,
        .begun_ms = now_us / 1000,
        .counts_us = job->arrived_us,
        .why = STORAGE_OK};
    job->detail[0] = '\0';
    settled->moment.is_known = false;
    if (!session_stands(session)) { /* only now may what other readers find be relied on */
        *ret_lost = true;
        return STORAGE_DOWN;
    }
    if (session->dispatcher != NULL) {
        session->dispatcher->has_recorded = false; /* settled_still() goes by all connections */
    }
    if (settled_is_known(core, session, job)) {
        return STORAGE_OK;
    }
    if (atomic_load(&core->stats.log_events) > 0 && catch_up(&w)) {
        return STORAGE_OK; /* Redis need not be asked: what waits in memory was missing */
    }
    bool all;
    enum storage_err err = await_folds(&w, &all);
    if (err == STORAGE_OK && all) {
        core_settled(core, now_us);
    }
    return err;
}
