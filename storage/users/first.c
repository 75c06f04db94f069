/* first.c - which actions of a request were the first of their user's day: what its folds noted.
 *
 * Everything is counted that was acknowledged before, so an event without a note was not first.  If
 * Redis can go back, a fold may still be lost, and another event may become the first one.  So the
 * answer is given only when the fold cannot be lost any more, and two readings were the same. */
#include "storage/read/operation.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/first_note.h"
#include "storage/schema/key.h"
#include "storage/schema/part_set.h"
#include "storage/users/bitmaps.h"

/* The partitions in which notes of the request can be. */
static enum storage_err find_partitions(
    struct core *core, const struct first_job *job, struct part_set *ret)
{
    *ret = (struct part_set){{0}};
    for (unsigned p = 0; job->events == NULL && p < core->partitions.n; p++) {
        if (partition_has_visitors(&core->partitions, p)) {
            part_set_add(ret, p);
        }
    }
    for (size_t i = 0; job->events != NULL && i < job->n; i++) {
        const struct event *event = &job->events[i];
        unsigned partition = 0;
        if (first_event_asks(event)) {
            enum storage_err err = activity_partition(core, event->site, event->user, &partition);
            if (err != STORAGE_OK) {
                return err;
            }
            part_set_add(ret, partition);
        }
    }
    return STORAGE_OK;
}

/* Append all notes to @ret. */
static bool read_notes(struct activity *a, const struct first_job *job,
    const struct part_set *partitions, struct buffer *ret)
{
    for (unsigned p = 0; p < a->core->partitions.n; p++) {
        struct key key;
        if (part_set_has(partitions, p)) {
            struct buffer *out = pipeline_command(&a->pipe, p, "GET", 1);
            resp_slice(out, key_first(&key, a->core->partitions.tag[p], &job->ticket));
        }
    }
    bool ok = pipeline_send(&a->pipe, false);
    for (unsigned p = 0; ok && p < a->core->partitions.n; p++) {
        if (part_set_has(partitions, p)) {
            const struct reply *reply = pipeline_take(&a->pipe);
            ok = reply != NULL && (reply->type == REPLY_NIL || reply->type == REPLY_TEXT ||
                                      pipeline_foreign(&a->pipe, "a note"));
            if (ok && reply->type == REPLY_TEXT) {
                buffer_append(ret, reply->text.p, reply->text.n);
            }
        }
    }
    return ok && (!ret->failed || pipeline_fail(&a->pipe, STORAGE_NOMEM));
}

/* ---- the answer ---- */

static int compare_events(const void *a, const void *b)
{
    const struct first_event *x = a;
    const struct first_event *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

static size_t count_lines(struct slice text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == '\n';
    }
    return n;
}

/* Copy the actions of @event; their bytes stay in job->text. */
static bool keep_actions(struct first_job *job, struct first_event *event)
{
    size_t size = event->n_actions * sizeof(*event->actions);
    struct slice *copy = arena_alloc(&job->arena, size);
    if (copy != NULL) {
        memcpy(copy, event->actions, size);
        event->actions = copy;
    }
    return copy != NULL;
}

static enum storage_err first_tell(struct storage_job *job)
{
    struct first_job *first = &job->u.first;
    struct slice left = first->text;
    struct slice actions[EVENT_ACTIONS_MAX];
    struct first_event event;
    size_t n = 0;
    struct first_event *found =
        arena_alloc(&first->arena, (count_lines(left) + 1) * sizeof(*found));
    while (found != NULL && first_note_next(&left, &event, actions)) {
        if (!keep_actions(first, &event)) {
            return STORAGE_NOMEM;
        }
        found[n++] = event;
    }
    if (found == NULL) {
        return STORAGE_NOMEM;
    }
    if (left.n > 0) { /* no line of a note */
        (void)snprintf(job->detail, sizeof(job->detail), "a note holds foreign data");
        return STORAGE_REFUSED;
    }
    if (n > 1) {
        qsort(found, n, sizeof(*found), compare_events);
    }
    first->found = found;
    first->n_found = n;
    job->held_to_ms = 0;
    return STORAGE_OK;
}

/* Has no server that has notes gone back between @from_ms and @to_ms?  In a cluster the reader's
 * own connections tell: they have just answered. */
static bool has_stood(const struct reader *reader, int64_t from_ms, int64_t to_ms)
{
    return reader->core->is_spread
               ? monotonic_ms() >= to_ms && reader->dispatcher.links.stood_us / 1000 < from_ms
               : standing_held(&reader->core->standing, from_ms, to_ms);
}

/* Is @text, which the notes say now, final?  True: they said the same before, and cannot be lost
 * any more.  False: @text is remembered, and the job put off.  *ret_ok false: out of memory. */
static bool is_final(const struct reader *reader, struct storage_job *job, struct slice text,
    int64_t begun_ms, bool *ret_ok)
{
    struct core *core = reader->core;
    struct first_job *first = &job->u.first;
    int64_t go_back_ms = atomic_load(&core->go_back_ms);
    bool is_same = job->held_to_ms != 0 && slice_equal(text, first->text);
    if (is_same && has_stood(reader, job->held_from_ms, job->held_to_ms)) {
        return true;
    }
    arena_clear(&first->arena);
    *ret_ok = arena_copy(&first->arena, &text);
    if (!*ret_ok) {
        return false;
    }
    first->text = text;
    job->held_from_ms = begun_ms;
    job->held_to_ms = monotonic_ms() + 1 + go_back_ms;
    bool can_be_lost = go_back_ms > 0 || core->config.ack_replicas > 0;
    if (can_be_lost) {
        standing_want(&core->standing, job->held_to_ms);
    }
    return !can_be_lost;
}

enum storage_err first_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct core *core = reader->core;
    struct part_set partitions;
    struct activity a;
    struct buffer text;
    bool ok = true;
    int64_t begun_ms = monotonic_ms();
    enum storage_err err = find_partitions(core, &job->u.first, &partitions);
    if (err != STORAGE_OK) {
        return err;
    }
    buffer_init(&text);
    activity_begin(&a, core, &reader->session, job->deadline_ms);
    (void)read_notes(&a, &job->u.first, &partitions, &text);
    err = pipeline_answer(&a.pipe, job, ret_lost);
    if (err == STORAGE_OK && is_final(reader, job, (struct slice){text.p, text.n}, begun_ms, &ok)) {
        err = first_tell(job);
        atomic_fetch_add(&core->stats.first_requests, err == STORAGE_OK);
    }
    buffer_release(&text);
    return ok ? err : STORAGE_NOMEM;
}
