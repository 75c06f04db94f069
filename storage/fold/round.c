#include "storage/fold/round.h"

#include "storage/base/clock.h"

#define SHOWN_US 20000 /* a round waits so long for answers of Redis that are under way */

bool round_init(
    struct round *r, struct core *core, struct unfolded *unfolded, struct seen_fold *seen_fold)
{
    *r = (struct round){.core = core, .unfolded = unfolded, .events_max = SIZE_MAX};
    r->session.look = (struct redis_look){core_runs, core, FOLD_SILENCE_MS};
    shared_memory_init(&r->shared, core->partitions.n);
    if (core->is_spread) {
        dispatcher_init(&r->dispatcher, core, &r->session.look);
        r->session.dispatcher = &r->dispatcher;
    }
    return lanes_init(&r->lanes, core, seen_fold, &r->shared);
}

/* The connection is closed, so Redis may have gone back: forget all that is known of the data. */
static void round_forget(struct round *r)
{
    lanes_forget(&r->lanes);
    shared_memory_forget(&r->shared);
    streams_forget(&r->streams);
    heads_clear(&r->heads);
}

void round_release(struct round *r)
{
    session_close(&r->session);
    round_forget(r);
    lanes_release(&r->lanes);
    if (r->session.dispatcher != NULL) {
        dispatcher_release(&r->dispatcher);
    }
    shared_memory_release(&r->shared);
    streams_release(&r->streams);
    heads_release(&r->heads);
    batch_release(&r->batch);
}

static bool round_connect(struct round *r)
{
    if (atomic_load(&r->core->secret) == NULL) {
        return false; /* no writer has found out yet whose data this is */
    }
    if (r->session.dispatcher != NULL) {
        return session_by_dispatcher(&r->session, r->core);
    }
    if (session_is_current(&r->session)) {
        return true;
    }
    session_close(&r->session);
    round_forget(r);
    return session_open(&r->session, r->core, monotonic_ms() + FOLD_CONNECT_MS);
}

static enum storage_err round_lost(struct round *r)
{
    session_lost(&r->session);
    round_forget(r);
    return STORAGE_DOWN;
}

/* Read the heads. */
static enum redis_status round_look(struct round *r)
{
    return streams_look(
        &r->streams, r->core, &r->session, monotonic_ms() + FOLD_STEP_MS, &r->heads);
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
        /* The numbers are skipped only now: a batch that was given up has skipped none. */
        atomic_fetch_add(&r->core->stats.entries_missing, (int64_t)batch_missing(&r->batch, l));
        const struct own_log *own = goal_own_log(goal, log->id);
        if (own != NULL) { /* also if the log was closed: what was acknowledged was folded */
            unfolded_done(r->unfolded, (unsigned)(own - goal->own), log->id, log->to);
        }
        if (stream != NULL && log->broken && !stream->is_broken) {
            stream->is_broken = stream->folded == log->to;
            if (!stream->is_told) {
                core_notice(r->core, STORAGE_LOG_BROKEN, log->id);
            }
            stream->is_told = true;
        }
    }
}

/* The number of the process's own log in the batch; -1: the batch has none. */
static int own_number(const struct round *r, const struct goal *goal)
{
    for (size_t l = 0; l < r->batch.n_logs; l++) {
        if (goal_own_log(goal, r->batch.logs[l].id) != NULL) {
            return (int)l;
        }
    }
    return -1;
}

/* The batch lacks entries of log number @log: have the next one read them from Redis. */
static void batch_is_stale(struct round *r, uint32_t log)
{
    const char *id = r->batch.logs[log].id;
    struct stream *stream = streams_find(&r->streams, id);
    const struct log_head *head = heads_find(&r->heads, id, 0);
    if (stream != NULL) {
        stream->is_known = false;
        stream->folded = 0;
        stream->must_read = head != NULL ? head->n : 0;
    }
}

/* Count the batch.  A stale one is STORAGE_OK, too: the next one will have what it lacks. */
static enum storage_err fold_batch(struct round *r, struct goal *goal)
{
    struct fold_result result =
        lanes_count(&r->lanes, &r->session, &r->batch, &r->heads, own_number(r, goal));
    if (result.end == FOLD_STALE) {
        batch_is_stale(r, result.log);
    }
    if (result.end == FOLD_DONE) {
        batch_is_folded(r, goal);
        goal->counted = true;
        if (r->core->is_spread && r->lanes.moved != NULL) {
            r->lanes.moved(r->lanes.moved_data);
        }
    }
    return result.end == FOLD_LOST  ? round_lost(r)
           : result.end == FOLD_ERR ? result.err
                                    : STORAGE_OK;
}

/* ---- the round ---- */

/* In a cluster a server whose connection did not stand may have gone back.  Then what partitions
 * were known to have counted may not be counted any more.  The batch rests on that, so it is
 * gathered anew. */
static void round_trust_what_stood(struct round *r)
{
    if (r->core->is_spread && r->dispatcher.links.stood_us != r->stood_us) {
        r->stood_us = r->dispatcher.links.stood_us;
        streams_forget(&r->streams);
        batch_clear(&r->batch);
    }
}

/* In a cluster a large batch may take so long on a busy machine that no transaction may rest on the
 * heads any more, and so may each batch behind it.  So the heads are read again, and the batch
 * stays if all connections stood.  False: a connection is lost. */
static bool renew_heads(struct round *r)
{
    if (!r->core->is_spread || r->batch.n_logs == 0 ||
        monotonic_ms() - r->heads.asked_ms < HEADS_AGE_MS / 2) {
        return true;
    }
    if (round_look(r) != REDIS_OK_STATUS) {
        return false;
    }
    round_trust_what_stood(r);
    return true;
}

/* Fill the batch: from memory, and from streams up to the round's goal. */
static enum storage_err round_gather(struct round *r, struct goal *goal)
{
    batch_clear(&r->batch);
    if (!gather_own(r, goal)) {
        return STORAGE_NOMEM;
    }
    bool needs_look =
        r->batch.n_logs == 0 || (goal->reach != ROUND_OWN && goal_has_others(r, goal));
    /* In a cluster the heads for the transactions come from here. */
    if (r->core->is_spread || (!goal->looked && needs_look)) {
        if (round_look(r) != REDIS_OK_STATUS) {
            return round_lost(r);
        }
        round_trust_what_stood(r);
        if (!goal_set(r, goal)) {
            return STORAGE_NOMEM;
        }
    }
    if (goal->looked && gather_streams(r, goal) != REDIS_OK_STATUS) {
        return round_lost(r);
    }
    /* A log whose server has changed meanwhile may not have what its head said. */
    round_trust_what_stood(r);
    if (!batch_finish(&r->batch, r->core)) {
        return STORAGE_NOMEM;
    }
    return renew_heads(r) ? STORAGE_OK : round_lost(r);
}

/* Behind a batch: does the round end?  *ret_err: why it ends before the goal, or STORAGE_OK. */
static bool round_is_over(struct round *r, const struct goal *goal, enum storage_err *ret_err)
{
    if (*ret_err != STORAGE_OK || goal_is_reached(r, goal, ret_err)) {
        return true;
    }
    *ret_err = core_runs(r->core) ? STORAGE_OK : STORAGE_SHUTDOWN;
    return *ret_err != STORAGE_OK;
}

enum storage_err round_run(struct round *r, enum round_reach reach)
{
    /* Other processes may have told clients of entries that this one has no answer for yet. */
    bool has_all =
        reach != ROUND_ALL || unfolded_await_shown(r->unfolded, monotonic_us() + SHOWN_US);
    struct goal goal = {.reach = reach, .n_own = core_logs(r->core)};
    enum storage_err err = STORAGE_OK;
    for (unsigned i = 0; i < goal.n_own; i++) {
        goal.own[i].last = unfolded_last(r->unfolded, i, goal.own[i].id);
    }
    if (!round_connect(r)) {
        return STORAGE_DOWN;
    }
    do {
        err = round_gather(r, &goal);
        if (err == STORAGE_OK && r->batch.n_logs > 0) {
            err = fold_batch(r, &goal);
            if (err == STORAGE_OK && !goal_set(r, &goal)) { /* the transaction has read the heads */
                err = STORAGE_NOMEM;
            }
        }
        batch_clear(&r->batch);
        if (reach == ROUND_OWN && goal.counted) {
            break;
        }
    } while (!round_is_over(r, &goal, &err));
    heads_release(&goal.heads);
    if (r->core->is_spread) {
        trim_streams(&r->trimmer, r->core, &r->session, r->unfolded, monotonic_ms() + FOLD_STEP_MS);
    }
    return err == STORAGE_OK && !has_all ? STORAGE_BEHIND : err;
}

bool round_others_are_folded(struct round *r)
{
    if (round_look(r) != REDIS_OK_STATUS) {
        (void)round_lost(r);
        return false;
    }
    bool all = session_is_current(&r->session); /* else another server may have become the master */
    for (size_t i = 0; all && i < r->heads.n; i++) {
        const struct log_head *head = &r->heads.all[i];
        const struct stream *stream = streams_find(&r->streams, head->id);
        all =
            unfolded_is_own(r->unfolded, head->id) || (stream != NULL && stream->folded >= head->n);
    }
    return all;
}
