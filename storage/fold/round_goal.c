/* round_goal.c - what a round of folding has to reach, and what memory has for it. */
#include "storage/fold/round_state.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"

#define FORSAKEN_MS 1500 /* a process folds its own log after 0.5 s, under load within 1 s */

const struct own_log *goal_own_log(const struct goal *goal, const char *id)
{
    for (unsigned i = 0; i < goal->n_own; i++) {
        if (strcmp(goal->own[i].id, id) == 0) {
            return &goal->own[i];
        }
    }
    return NULL;
}

uint64_t goal_of(const struct round *r, const struct goal *goal, const struct log_head *head)
{
    const struct own_log *own = goal_own_log(goal, head->id);
    if (own != NULL) {
        return own->last < head->n ? own->last : head->n;
    }
    int64_t age_ms = redis_clock_ms(&r->core->clock) - head->time_ms;
    bool in_reach =
        goal->reach == ROUND_ALL || (goal->reach == ROUND_FORSAKEN && age_ms >= FORSAKEN_MS);
    return in_reach ? head->n : 0;
}

bool goal_set(struct round *r, struct goal *goal)
{
    if (goal->looked) {
        return true;
    }
    goal->looked = true;
    goal->heads.n = r->heads.n;
    goal->heads.all = calloc(r->heads.n + 1, sizeof(*r->heads.all));
    if (goal->heads.all == NULL) {
        return false;
    }
    if (r->heads.n > 0) {
        memcpy(goal->heads.all, r->heads.all, r->heads.n * sizeof(*r->heads.all));
    }
    return true;
}

bool goal_is_reached(struct round *r, const struct goal *goal, enum storage_err *ret_err)
{
    *ret_err = STORAGE_OK;
    for (size_t i = 0; i < goal->heads.n; i++) {
        const struct log_head *now = heads_find(&r->heads, goal->heads.all[i].id, i);
        if (now == NULL) {
            continue; /* the log was closed, so all of it was counted */
        }
        struct log_head head = goal->heads.all[i];
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

bool goal_has_others(const struct round *r, const struct goal *goal)
{
    for (size_t i = 0; i < r->heads.n; i++) {
        if (goal_own_log(goal, r->heads.all[i].id) == NULL) {
            return true;
        }
    }
    return r->heads.n == 0;
}

/* Take what memory has of the own log at @place, without a gap. */
static bool gather_own_log(
    struct round *r, const struct own_log *own, unsigned place, size_t max_events)
{
    struct log_entry **entries;
    size_t n;
    struct stream *stream = streams_find(&r->streams, own->id);
    if (stream == NULL) {
        return false;
    }
    char id[LOG_ID_TEXT + 1];
    uint64_t last = unfolded_take(r->unfolded, place, stream->folded, max_events, id, &entries, &n);
    bool ok = true;
    bool is_same = strcmp(id, own->id) == 0; /* else a new log has begun, for the next round */
    struct batch_log *log = NULL;
    size_t i = 0;
    /* Behind a stale batch the cursors are read first: they may lack what memory has let go. */
    bool is_stale = stream->must_read > 0 && !stream->is_known;
    if (is_same && n > 0 && !is_stale && stream->must_read < entries[0]->n) {
        log = batch_add_log(&r->batch, own->id, entries[0]->n - 1);
    }
    for (; log != NULL && i < n && entries[i]->n == log->to + 1 && ok; i++) {
        ok = batch_add(&r->batch, entries[i]);
    }
    if (log != NULL) {
        log->more = log->to < last;
    }
    for (; i < n; i++) {
        entry_release(entries[i]);
    }
    free(entries);
    return ok;
}

bool gather_own(struct round *r, const struct goal *goal)
{
    bool ok = true;
    for (unsigned i = 0; ok && i < goal->n_own; i++) {
        const struct own_log *own = &goal->own[i];
        size_t taken = batch_events(&r->batch);
        if (own->id[0] != '\0' && taken < r->events_max) {
            ok = gather_own_log(r, own, i, r->events_max - taken);
        }
    }
    return ok;
}
