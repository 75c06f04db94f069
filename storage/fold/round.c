#include "storage/fold/round.h"

#include <pthread.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/fold/pass_by.h"

#define CONNECT_MS  1000
#define STEP_MS     5000 /* no step takes so long on a Redis that lives */
#define SILENCE_MS  3000
#define FORSAKEN_MS 3000 /* a log's own process folds sooner */

/* A batch of so many rows is folded on two threads: one merges while Redis carries out what the
 * other has merged.  Less is not worth a thread. */
#define BESIDE_ROWS 2000

bool round_init(
    struct round *r, struct core *core, struct unfolded *unfolded, struct seen_fold *seen_fold)
{
    *r = (struct round){.core = core, .unfolded = unfolded, .events_max = SIZE_MAX};
    r->session.look = (struct redis_look){core_runs, core};
    if (core->is_spread) {
        dispatcher_init(&r->dispatcher, core, &r->session.look, SILENCE_MS);
        lanes_init(&r->lanes, core, seen_fold);
        r->session.dispatcher = &r->dispatcher;
        return true;
    }
    r->beside.session.look = r->session.look;
    r->tx = transaction_new(core, seen_fold);
    r->beside.tx = transaction_new(core, seen_fold);
    return r->tx != NULL && r->beside.tx != NULL;
}

/* The connection is closed: nothing is known any more. */
static void round_forget(struct round *r)
{
    session_close(&r->beside.session);
    if (r->tx != NULL && r->beside.tx != NULL) {
        transaction_forget(r->beside.tx);
        transaction_forget(r->tx);
    }
    streams_forget(&r->streams);
    r->heads.n = 0;
}

void round_release(struct round *r)
{
    session_close(&r->session);
    round_forget(r);
    transaction_free(r->tx);
    transaction_free(r->beside.tx);
    heads_release(&r->beside.heads);
    if (r->session.dispatcher != NULL) {
        dispatcher_release(&r->dispatcher);
        lanes_release(&r->lanes);
    }
    streams_release(&r->streams);
    heads_release(&r->heads);
    batch_release(&r->batch);
}

static bool open_session(struct round *r, struct session *session)
{
    char error[160];
    int64_t deadline_ms = monotonic_ms() + CONNECT_MS;
    if (!session_open(session, r->core, deadline_ms, error, sizeof(error))) {
        return false;
    }
    redis_limit_silence(session->redis, SILENCE_MS);
    return true;
}

static bool round_connect(struct round *r)
{
    if (r->session.dispatcher != NULL) {
        return session_by_dispatcher(&r->session, r->core);
    }
    if (session_is_current(&r->session)) {
        return true;
    }
    session_close(&r->session);
    round_forget(r);
    return open_session(r, &r->session);
}

static enum storage_err round_lost(struct round *r)
{
    session_lost(&r->session);
    round_forget(r);
    return STORAGE_DOWN;
}

/* ---- what is to be folded ---- */

/* What a round has to reach. */
struct goal {
    enum round_reach reach;
    struct own_log {
        char id[LOG_ID_TEXT + 1];
        uint64_t last;         /* the last entry that was answered when the round began */
        bool from_memory;      /* the batch has entries of it from memory */
    } own[LOG_PARTITIONS_MAX]; /* by place */
    unsigned n_own;
    bool counted;       /* a batch */
    bool looked;        /* the heads were read since.. */
    struct heads heads; /* ..and were these; owned */
};

/* NULL: it is another process's. */
static const struct own_log *own_log(const struct goal *goal, const char *id)
{
    for (unsigned i = 0; i < goal->n_own; i++) {
        if (strcmp(goal->own[i].id, id) == 0) {
            return &goal->own[i];
        }
    }
    return NULL;
}

/* How far the log is to be folded: an own entry that Redis does not have yet is appended again. */
static uint64_t goal_of(const struct round *r, const struct goal *goal, const struct log_head *head)
{
    const struct own_log *own = own_log(goal, head->id);
    if (own != NULL) {
        return own->last < head->n ? own->last : head->n;
    }
    int64_t age_ms = redis_clock_ms(&r->core->clock) - head->time_ms;
    bool in_reach =
        goal->reach == ROUND_ALL || (goal->reach == ROUND_FORSAKEN && age_ms >= FORSAKEN_MS);
    return in_reach ? head->n : 0;
}

/* Take what memory has of the own log at @place, without a gap. */
static bool gather_own_log(struct round *r, struct own_log *own, unsigned place, size_t max_events)
{
    struct log_entry **entries;
    size_t n;
    struct stream *stream = streams_find(&r->streams, own->id);
    if (stream == NULL) {
        return false;
    }
    char id[LOG_ID_TEXT + 1];
    uint64_t last = unfolded_take(r->unfolded, place, stream->folded, max_events, id, &entries, &n);
    bool ok = strcmp(id, own->id) == 0; /* else another log has begun: in the next round */
    struct batch_log *log = NULL;
    size_t i = 0;
    if (ok && n > 0 && stream->must_read < entries[0]->n) {
        log = batch_add_log(&r->batch, own->id, entries[0]->n - 1);
    }
    for (; log != NULL && i < n && entries[i]->n == log->to + 1 && ok; i++) {
        ok = batch_add(&r->batch, entries[i]);
        log->in_memory = true;
    }
    if (log != NULL) {
        log->more = log->to < last;
        own->from_memory = true;
    }
    for (; i < n; i++) {
        entry_release(entries[i]);
    }
    free(entries);
    return ok;
}

static size_t events_in(const struct batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_entries; i++) {
        n += entry_events(batch->entries[i].entry);
    }
    return n;
}

/* The same of all own logs. */
static bool gather_own(struct round *r, struct goal *goal)
{
    bool ok = true;
    for (unsigned i = 0; ok && i < goal->n_own; i++) {
        struct own_log *own = &goal->own[i];
        size_t taken = goal->n_own > 1 ? events_in(&r->batch) : 0;
        own->from_memory = false;
        if (goal->n_own == 1 || (own->id[0] != '\0' && taken < r->events_max)) {
            ok = gather_own_log(r, own, i, r->events_max - taken);
        }
    }
    return ok;
}

/* Read a piece of the logs that are behind their goal, and are not in the batch from memory. */
static enum redis_status gather_streams(struct round *r, const struct goal *goal)
{
    enum redis_status status = REDIS_OK_STATUS;
    int64_t deadline_ms = monotonic_ms() + STEP_MS;
    for (size_t i = 0; status == REDIS_OK_STATUS && i < r->heads.n; i++) {
        const struct log_head *head = &r->heads.heads[i];
        uint64_t to = goal_of(r, goal, head);
        struct stream *stream = streams_find(&r->streams, head->id);
        if (stream == NULL) {
            return REDIS_LOST;
        }
        const struct own_log *own = own_log(goal, head->id);
        if (stream->is_broken || (own != NULL && own->from_memory)) {
            continue;
        }
        if (!stream->is_known && stream->folded < to) {
            status = streams_learn(r->core, &r->session, deadline_ms, stream);
        }
        if (status == REDIS_OK_STATUS && stream->folded < to) {
            status = streams_read(
                &r->streams, r->core, &r->session, deadline_ms, stream, head->place, to, &r->batch);
        }
    }
    return status;
}

/* ---- folding a batch ---- */

/* All partitions have counted the batch. */
static void batch_is_folded(struct round *r, const struct goal *goal)
{
    for (size_t l = 0; l < r->batch.n_logs; l++) {
        const struct batch_log *log = &r->batch.logs[l];
        struct stream *stream = streams_find(&r->streams, log->id);
        if (stream != NULL && stream->folded < log->to) {
            stream->folded = log->to;
        }
        const struct own_log *own = own_log(goal, log->id);
        if (own != NULL) { /* also where it is closed: what was acknowledged was folded */
            unfolded_done(r->unfolded, (unsigned)(own - goal->own), log->id, log->to);
        }
        if (stream != NULL && log->broken && !stream->is_broken) {
            stream->is_broken = stream->folded == log->to;
            core_notice(r->core, STORAGE_LOG_BROKEN, log->id);
        }
    }
}

static int own_number(const struct round *r, const struct goal *goal)
{
    for (size_t l = 0; l < r->batch.n_logs; l++) {
        if (own_log(goal, r->batch.logs[l].id) != NULL) {
            return (int)l;
        }
    }
    return -1;
}

/* The batch lacks entries of @log: read them from Redis. */
static void batch_is_stale(struct round *r, uint32_t log)
{
    const char *id = r->batch.logs[log].id;
    struct stream *stream = streams_find(&r->streams, id);
    const struct log_head *head = heads_find(&r->heads, id);
    if (stream != NULL) {
        stream->is_known = false;
        stream->folded = 0;
        stream->must_read = head != NULL ? head->n : 0;
    }
}

/* In all partitions of a cluster.  A failure leaves some that have counted the batch. */
static enum fold_end count_spread(struct round *r, uint32_t *ret_log, enum storage_err *ret_err)
{
    struct part_set with = {.words = {0}};
    bool any = false;
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        if (r->batch.tasks[p].n > 0) {
            part_set_add(&with, p);
            any = true;
        }
    }
    int64_t deadline_ms = monotonic_ms() + STEP_MS;
    enum fold_end end =
        any ? lanes_count(&r->lanes, &r->batch, &with, &r->heads, deadline_ms, ret_log, ret_err)
            : FOLD_DONE;
    return end == FOLD_DONE ? pass_by(r->core, &r->session, &r->batch, &with, &r->heads,
                                  deadline_ms, ret_log, ret_err)
                            : end;
}

/* What one thread folds of a batch, and how that ended. */
struct fold_range {
    struct round *round;
    struct session *session;
    struct transaction *tx;
    struct heads *heads;
    _Atomic unsigned *left; /* partitions that nobody has taken; NULL: all are this one's */
    bool from_end;
    int trim; /* by the last transaction: see transaction_run() */
    enum fold_end result;
    uint32_t stale; /* the log, of FOLD_STALE */
    enum storage_err err;
};

/* What the next transaction counts; none at the end. */
static struct fold_cuts next_cuts(
    const struct fold_range *range, struct cutter *cutter, struct cut cuts[CUTS_MAX], bool *no_more)
{
    if (*no_more) {
        return (struct fold_cuts){.n = 0};
    }
    unsigned n = cutter_next(cutter, transaction_limit_us(range->tx), cuts, no_more);
    return (struct fold_cuts){cuts, n};
}

static void *range_fold(void *data)
{
    struct fold_range *range = data;
    struct round *r = range->round;
    struct cutter cutter;
    struct cut cuts[2][CUTS_MAX]; /* of this transaction and the next, in turn */
    struct fold_cuts now;
    bool no_more = false;
    range->result = FOLD_DONE;
    range->err = STORAGE_OK;
    cutter_begin(&cutter, r->core, &r->batch);
    if (range->left != NULL) {
        cutter_share(&cutter, range->left, range->from_end);
    }
    struct fold_cuts next = next_cuts(range, &cutter, cuts[0], &no_more);
    for (unsigned i = 1; range->result == FOLD_DONE && next.n > 0; i++) {
        now = next;
        next = next_cuts(range, &cutter, cuts[i % 2], &no_more);
        range->result = transaction_run(range->tx, range->session, &r->batch, now, next,
            next.n == 0 ? range->trim : -1, monotonic_ms() + STEP_MS, range->heads, &range->stale,
            &range->err);
        if (range->result == FOLD_DONE && r->moved != NULL) {
            r->moved(r->moved_data);
        }
    }
    return NULL;
}

/* Is the batch worth a second thread, and is there a connection for it, to the same server? */
static bool can_fold_beside(struct round *r)
{
    struct session *session = &r->beside.session;
    if (r->batch.n_rows < BESIDE_ROWS || r->core->partitions.n < 2) {
        return false;
    }
    if (!session_is_current(session)) {
        session_close(session);
        transaction_forget(r->beside.tx);
        return open_session(r, session);
    }
    return true;
}

/* Fold on two threads.  Afterwards the log @trim is cut, if all is counted. */
static void fold_beside(struct round *r, struct fold_range *own, int trim)
{
    pthread_t thread;
    _Atomic unsigned left = r->core->partitions.n;
    own->left = &left;
    struct fold_range other = *own;
    other.from_end = true;
    other.session = &r->beside.session;
    other.tx = r->beside.tx;
    other.heads = &r->beside.heads;
    bool beside = pthread_create(&thread, NULL, range_fold, &other) == 0;
    (void)range_fold(own);
    if (beside) {
        (void)pthread_join(thread, NULL);
    } else {
        (void)range_fold(&other);
    }
    if (own->result == FOLD_DONE || other.result == FOLD_LOST) {
        own->result = other.result;
        own->stale = other.stale;
        own->err = other.err;
    }
    if (own->result == FOLD_DONE && trim >= 0) {
        const struct batch_log *log = &r->batch.logs[trim];
        enum redis_status status =
            stream_trim(r->core, &r->session, monotonic_ms() + STEP_MS, log->id, log->to);
        own->result = status == REDIS_OK_STATUS ? FOLD_DONE : FOLD_LOST;
    }
}

/* In all partitions of one server. */
static enum fold_end count_here(
    struct round *r, struct goal *goal, uint32_t *ret_log, enum storage_err *ret_err)
{
    int trim = own_number(r, goal);
    struct fold_range all = {
        .round = r, .session = &r->session, .tx = r->tx, .heads = &r->heads, .trim = -1};
    if (can_fold_beside(r)) {
        fold_beside(r, &all, trim);
    } else {
        all.trim = trim;
        (void)range_fold(&all);
    }
    *ret_log = all.stale;
    *ret_err = all.err;
    return all.result;
}

static enum storage_err fold_batch(struct round *r, struct goal *goal)
{
    uint32_t log = 0;
    enum storage_err err = STORAGE_OK;
    enum fold_end end =
        r->core->is_spread ? count_spread(r, &log, &err) : count_here(r, goal, &log, &err);
    if (end == FOLD_STALE) {
        batch_is_stale(r, log);
    }
    if (end == FOLD_DONE) {
        batch_is_folded(r, goal);
        goal->counted = true;
        if (r->core->is_spread && r->moved != NULL) {
            r->moved(r->moved_data);
        }
    }
    return end == FOLD_LOST ? round_lost(r) : end == FOLD_ERR ? err : STORAGE_OK;
}

/* ---- the round ---- */

/* The heads were read for the first time in the round: this is what is to be reached. */
static bool set_goal(struct round *r, struct goal *goal)
{
    if (goal->looked) {
        return true;
    }
    goal->looked = true;
    goal->heads.n = r->heads.n;
    goal->heads.heads = calloc(r->heads.n + 1, sizeof(*r->heads.heads));
    if (goal->heads.heads == NULL) {
        return false;
    }
    if (r->heads.n > 0) {
        memcpy(goal->heads.heads, r->heads.heads, r->heads.n * sizeof(*r->heads.heads));
    }
    return true;
}

/* Is all folded that the round has to reach?  What a log lost since, its process appends again. */
static bool is_reached(struct round *r, const struct goal *goal, enum storage_err *ret_err)
{
    *ret_err = STORAGE_OK;
    for (size_t i = 0; i < goal->heads.n; i++) {
        const struct log_head *now = heads_find(&r->heads, goal->heads.heads[i].id);
        if (now == NULL) {
            continue; /* closed, so all of it was counted */
        }
        struct log_head head = goal->heads.heads[i];
        head.n = now->n < head.n ? now->n : head.n;
        const struct stream *stream = streams_find(&r->streams, head.id);
        uint64_t to = goal_of(r, goal, &head);
        if (stream == NULL) {
            *ret_err = STORAGE_NOMEM;
        } else if (stream->is_broken) {
            *ret_err = to > stream->folded ? STORAGE_BEHIND : *ret_err;
        } else if (stream->folded < to) {
            return false;
        }
    }
    return true;
}

/* Are there logs of others, as far as is known? */
static bool has_others(const struct round *r, const struct goal *goal)
{
    for (size_t i = 0; i < r->heads.n; i++) {
        if (own_log(goal, r->heads.heads[i].id) == NULL) {
            return true;
        }
    }
    return r->heads.n == 0;
}

/* Of a cluster: what all partitions were known to have counted may not be so any more.  The batch,
 * which rests on that, is gathered anew. */
static void round_forget_counted(struct round *r)
{
    r->stood_us = r->dispatcher.stood_us;
    streams_forget(&r->streams);
    batch_clear(&r->batch);
}

/* Fill the batch. */
static enum storage_err gather(struct round *r, struct goal *goal)
{
    batch_clear(&r->batch);
    if (!gather_own(r, goal)) {
        return STORAGE_NOMEM;
    }
    bool needs_look = r->batch.n_logs == 0 || (goal->reach != ROUND_OWN && has_others(r, goal));
    /* In a cluster the heads for the transactions come from here. */
    if (r->core->is_spread || (!goal->looked && needs_look)) {
        if (streams_look(&r->streams, r->core, &r->session, monotonic_ms() + STEP_MS, &r->heads) !=
            REDIS_OK_STATUS) {
            return round_lost(r);
        }
        if (r->core->is_spread && r->dispatcher.stood_us != r->stood_us) {
            round_forget_counted(r); /* a server may have gone back: it is learnt again */
        }
        if (!set_goal(r, goal)) {
            return STORAGE_NOMEM;
        }
    }
    if (goal->looked && gather_streams(r, goal) != REDIS_OK_STATUS) {
        return round_lost(r);
    }
    return batch_finish(&r->batch, r->core) ? STORAGE_OK : STORAGE_NOMEM;
}

enum storage_err round_run(struct round *r, enum round_reach reach)
{
    struct goal goal = {.reach = reach, .n_own = core_logs(r->core)};
    enum storage_err err = STORAGE_OK;
    for (unsigned i = 0; i < goal.n_own; i++) {
        struct log_entry **none;
        size_t n;
        goal.own[i].last = unfolded_take(r->unfolded, i, UINT64_MAX, 0, goal.own[i].id, &none, &n);
        free(none);
    }
    if (!round_connect(r)) {
        return STORAGE_DOWN;
    }
    do {
        err = gather(r, &goal);
        if (err == STORAGE_OK && r->batch.n_logs > 0) {
            err = fold_batch(r, &goal);
            if (err == STORAGE_OK && !set_goal(r, &goal)) { /* the transaction has read the heads */
                err = STORAGE_NOMEM;
            }
        }
        batch_clear(&r->batch);
        if (reach == ROUND_OWN && goal.counted) {
            break;
        }
    } while (err == STORAGE_OK && !is_reached(r, &goal, &err) && core_runs(r->core));
    heads_release(&goal.heads);
    if (r->core->is_spread) {
        trim_streams(&r->trimmer, r->core, &r->session, r->unfolded, monotonic_ms() + STEP_MS);
    }
    return err;
}
