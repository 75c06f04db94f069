/* gather_streams.c - which logs are folded from their streams in Redis, and how far.
 *
 * These are the logs of other processes, and own logs whose entries in memory are of no use.
 *
 * In a cluster the record of a key, and what its request counts for, lie on servers that go back
 * one without the other.  A failover that takes an entry with its records must not leave what the
 * entry was counted for: its client has no answer yet, and repeats the request.  A process knows of
 * its own entries what replicas have acknowledged (log/acknowledge.h).  Of the entries of others it
 * asks the log's server, behind the reading of the heads (session/replicated.h).
 *
 * Questions wait for such entries for a second at most.  Then the entries are folded all the same,
 * as their own process folds them: a server whose replicas are gone would stop all questions.
 */
#include "storage/fold/round_state.h"

#include "storage/base/clock.h"
#include "storage/session/replicated.h"

#define WAIT_MS 100 /* a server waits so long for its replicas: then own entries are folded */

/* Does the fold of the log wait for its replicas? */
static bool is_guarded(const struct round *r, const struct goal *goal, const struct log_head *head)
{
    return replicated_before_folded(r->core) && goal_own_log(goal, head->id) == NULL;
}

/* How far the log is to be folded now: at most what replicas have. */
static uint64_t stream_foldable(const struct round *r, const struct goal *goal,
    const struct log_head *head, const struct stream *stream)
{
    uint64_t to = goal_of(r, goal, head);
    return is_guarded(r, goal, head) && stream->replicated < to ? stream->replicated : to;
}

/* The stream of the log with @head, if its replicas must be asked for entries.  NULL: they need not
 * be. */
static struct stream *stream_waiting(
    struct round *r, const struct goal *goal, const struct log_head *head)
{
    struct stream *stream = streams_find(&r->streams, head->id);
    if (stream == NULL || !is_guarded(r, goal, head)) {
        return NULL;
    }
    uint64_t known = stream->folded > stream->replicated ? stream->folded : stream->replicated;
    return goal_of(r, goal, head) > known ? stream : NULL;
}

/* Replicas have the entries of @stream up to @to, or they do not yet. */
static void stream_learn(struct stream *stream, uint64_t to, bool is_replicated)
{
    int64_t now_ms = monotonic_ms();
    if (!is_replicated && stream->lags_since_ms == 0) {
        stream->lags_since_ms = now_ms;
    }
    if (is_replicated || now_ms - stream->lags_since_ms >= REPLICAS_PATIENCE_MS) {
        stream->replicated = to;
        stream->lags_since_ms = 0;
    }
}

/* Ask the servers of others' logs that are behind their goals whether replicas have the entries.
 * How far these logs are folded is known. */
static enum redis_status ask_replicas(struct round *r, const struct goal *goal, int64_t deadline_ms)
{
    struct part_set asked = {.words = {0}};
    struct part_set have;
    bool any = false;
    for (size_t i = 0; i < r->heads.n; i++) {
        const struct log_head *head = &r->heads.all[i];
        if (stream_waiting(r, goal, head) != NULL) {
            part_set_add(&asked, core_log_partition(r->core, head->place));
            any = true;
        }
    }
    if (!any) {
        return REDIS_OK_STATUS;
    }
    enum redis_status status = replicated_ask(
        r->core, &r->session, &asked, r->core->config.ack_replicas, WAIT_MS, deadline_ms, &have);
    for (size_t i = 0; status == REDIS_OK_STATUS && i < r->heads.n; i++) {
        const struct log_head *head = &r->heads.all[i];
        struct stream *stream = stream_waiting(r, goal, head);
        if (stream != NULL) {
            stream_learn(stream, goal_of(r, goal, head),
                part_set_has(&have, core_log_partition(r->core, head->place)));
        }
    }
    return status;
}

/* Are entries of the log to be read from its stream?  What the batch has is from memory so far. */
static bool stream_is_source(const struct round *r, const struct log_head *head)
{
    bool has = false;
    for (size_t l = 0; !has && l < r->batch.n_logs; l++) {
        has = strcmp(r->batch.logs[l].id, head->id) == 0;
    }
    return !has;
}

/* Read how far the logs are counted that are behind their goals and not in the batch from memory.
 * A log that cannot be read here may be counted by a process of a later version. */
static enum redis_status learn_streams(
    struct round *r, const struct goal *goal, int64_t deadline_ms)
{
    enum redis_status status = REDIS_OK_STATUS;
    for (size_t i = 0; status == REDIS_OK_STATUS && i < r->heads.n; i++) {
        const struct log_head *head = &r->heads.all[i];
        struct stream *stream = streams_find(&r->streams, head->id);
        if (stream == NULL) {
            return REDIS_LOST;
        }
        if ((stream->is_broken || !stream->is_known) && stream->folded < goal_of(r, goal, head) &&
            stream_is_source(r, head)) {
            uint64_t was = stream->folded;
            status = streams_learn(r->core, &r->session, deadline_ms, stream);
            stream->is_broken = stream->is_broken && stream->folded == was;
            stream->is_told = stream->is_told && stream->folded == was;
        }
    }
    return status;
}

/* Where the stream lacks entries of the batch's last log, the batch begins behind what is counted
 * by now.  The log's own process has cut these entries off meanwhile, and cuts off only what is
 * counted. */
static enum redis_status begin_behind_counted(
    struct round *r, struct stream *stream, int64_t deadline_ms)
{
    struct batch_log *log = &r->batch.logs[r->batch.n_logs - 1];
    if (batch_missing(&r->batch, r->batch.n_logs - 1) == 0) {
        return REDIS_OK_STATUS;
    }
    enum redis_status status = streams_learn(r->core, &r->session, deadline_ms, stream);
    uint64_t counted = stream->folded < log->to ? stream->folded : log->to;
    log->from = counted > log->from ? counted : log->from;
    return status;
}

enum redis_status gather_streams(struct round *r, const struct goal *goal)
{
    int64_t deadline_ms = monotonic_ms() + FOLD_STEP_MS;
    enum redis_status status = learn_streams(r, goal, deadline_ms);
    if (status == REDIS_OK_STATUS) {
        status = ask_replicas(r, goal, deadline_ms);
    }
    for (size_t i = 0; status == REDIS_OK_STATUS && i < r->heads.n; i++) {
        const struct log_head *head = &r->heads.all[i];
        struct stream *stream = streams_find(&r->streams, head->id);
        if (stream == NULL) {
            return REDIS_LOST;
        }
        uint64_t to = stream_foldable(r, goal, head, stream);
        if (!stream->is_broken && stream->folded < to && stream_is_source(r, head)) {
            size_t n_logs = r->batch.n_logs;
            status = streams_read(
                &r->streams, r->core, &r->session, deadline_ms, stream, head->place, to, &r->batch);
            if (status == REDIS_OK_STATUS && r->batch.n_logs > n_logs) {
                status = begin_behind_counted(r, stream, deadline_ms);
            }
        }
    }
    return status;
}
