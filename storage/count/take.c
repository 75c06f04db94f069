#include "storage/count/take.h"

#include <stdio.h>

#include "storage/count/chunk.h"
#include "storage/count/recall.h"
#include "storage/read/plan.h"

/* Do all buckets of the chunk hold by the state and the time of the reply?  (Those that are
 * recalled hold if their proofs do.) */
static bool holds(const struct counter *c, const struct chunk *chunk,
    const struct partition_view *view, int64_t now_s)
{
    struct cover_basis basis = plan_basis(c->zone, view, now_s);
    size_t end = chunk->first + chunk->n;
    for (size_t i = chunk_next_read(chunk->shard, chunk->first); i < end;
         i = chunk_next_read(chunk->shard, i + 1)) {
        if (!cover_legal(&basis, chunk->shard->cover.buckets[i])) {
            return false;
        }
    }
    return true;
}

static enum storage_err foreign(struct storage_job *job)
{
    (void)snprintf(job->detail, sizeof(job->detail), "a counter holds foreign data");
    return STORAGE_REFUSED;
}

/* A bucket's sketches, page by page; into the run that it belongs to, if it does. */
static enum storage_err take_sketches(struct counter *c, struct storage_job *job, struct hll *run,
    enum metric metric, size_t point, const struct reply *strings, size_t n)
{
    bool nomem = false;
    for (size_t i = 0; i < n; i++) {
        struct slice string = strings[i].text;
        if (strings[i].type != REPLY_TEXT) {
            continue;
        }
        bool ok = run != NULL ? hll_merge(run, string.p, string.n)
                              : tally_sketch(&c->tally, metric, point, string.p, string.n, &nomem);
        if (!ok) {
            return nomem ? STORAGE_NOMEM : foreign(job);
        }
    }
    return STORAGE_OK;
}

/* The same of a bucket's numbers. */
static enum storage_err take_sums(struct counter *c, struct storage_job *job, uint64_t *run,
    enum metric metric, size_t point, const struct reply *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t number = values[i].type == REPLY_NIL ? 0 : reply_integer(&values[i], -1);
        if (number < 0) {
            return foreign(job);
        }
        if (run != NULL) {
            *run += (uint64_t)number;
        } else {
            tally_sum(&c->tally, metric, point, (uint64_t)number);
        }
    }
    return STORAGE_OK;
}

/* What was read of bucket @i of the cover, page by page. */
static enum storage_err take_bucket(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, const struct partition_view *view, enum metric metric, size_t i,
    size_t point, const struct reply *values)
{
    const struct shard *shard = chunk->shard;
    const struct run *run = count_run_at(shard, i);
    if (run != NULL && i == run->first) {
        hll_clear(&c->run[metric]);
        c->run_sum[metric] = 0;
        c->run_ver[metric] = *closed_ver(view, run->proof);
    }
    enum storage_err err = metric_is_sketch(metric)
                               ? take_sketches(c, job, run != NULL ? &c->run[metric] : NULL, metric,
                                     point, values, shard->n_pages)
                               : take_sums(c, job, run != NULL ? &c->run_sum[metric] : NULL, metric,
                                     point, values, shard->n_pages);
    if (err == STORAGE_OK && run != NULL && i == run->first + run->n - 1 &&
        !count_remember(c, metric, run, view, shard)) {
        err = STORAGE_NOMEM;
    }
    return err;
}

/* The replies about one metric: all sketches in one array, or an array a bucket. */
static enum storage_err take_metric(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, const struct partition_view *view, enum metric metric,
    const struct reply *data, size_t n)
{
    const struct shard *shard = chunk->shard;
    bool sketch = metric_is_sketch(metric);
    size_t values = shard->n_pages * (sketch ? chunk->reads : 1);
    for (size_t i = 0; i < n; i++) {
        if (data[i].type != REPLY_ARRAY || data[i].n != values) {
            return foreign(job);
        }
    }
    enum storage_err err = STORAGE_OK;
    size_t end = chunk->first + chunk->n;
    size_t point = chunk->point;
    size_t at = 0;
    for (size_t i = chunk_next_read(shard, chunk->first); err == STORAGE_OK && i < end;
         i = chunk_next_read(shard, i + 1), at++) {
        point = chunk_point_of(shard, i, point);
        err = take_bucket(c, job, chunk, view, metric, i, point,
            sketch ? data[0].items + at * shard->n_pages : data[at].items);
    }
    return err;
}

static enum storage_err refuse(struct storage_job *job, const struct reply *reply)
{
    (void)snprintf(job->detail, sizeof(job->detail), "%.*s", (int)strcspn(reply->text.p, "\r\n"),
        reply->text.p);
    if (reply_is_error(reply, "LOADING") || reply_is_error(reply, "MASTERDOWN")) {
        return STORAGE_DOWN;
    }
    return STORAGE_REFUSED;
}

/* The replies between HMGET and TIME, in the order of asking. */
static enum storage_err take_data(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, const struct partition_view *view, const struct reply *data)
{
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; i < chunk->n_commands; i++) {
        if (data[i].type == REPLY_ERROR) {
            return refuse(job, &data[i]);
        }
    }
    for (int metric = 0; err == STORAGE_OK && chunk->reads > 0 && metric < METRICS; metric++) {
        if (!chunk_has_metric(chunk, metric)) {
            continue;
        }
        size_t n = metric_is_sketch((enum metric)metric) ? 1 : chunk->reads;
        err = take_metric(c, job, chunk, view, (enum metric)metric, data, n);
        data += n;
    }
    return err;
}

/* Is all that is read of a shard of one `ver`? */
static void note_ver(struct shard *shard, const struct partition_view *view)
{
    shard->mixed = shard->mixed || (shard->seen && !ver_equal(&shard->seen_view.ver, &view->ver));
    shard->seen = true;
    shard->seen_view = *view;
}

enum storage_err chunk_take(struct counter *c, struct storage_job *job, const struct chunk *chunk,
    const struct reply *reply)
{
    if (reply->type == REPLY_ERROR) {
        return refuse(job, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n != chunk->n_commands + 2) {
        return STORAGE_REFUSED;
    }
    struct partition_view view;
    if (!core_parse_rolled(c->core, &reply->items[0], &view)) {
        return STORAGE_CONFIG;
    }
    int64_t time_us = reply_time_us(&reply->items[reply->n - 1]);
    core_time_seen(c->core, time_us);
    c->latest_s = time_us / 1000000;
    core_set_view(c->core, chunk->shard->partition, &view);
    if (view.known && !holds(c, chunk, &view, c->latest_s)) {
        c->stale = true;
        return STORAGE_OK;
    }
    if (!closed_same(chunk->shard->recalled, &chunk->shard->view, &view)) {
        c->stale = true;
        return STORAGE_OK;
    }
    note_ver(chunk->shard, &view);
    return take_data(c, job, chunk, &view, &reply->items[1]);
}
