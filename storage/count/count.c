#include "storage/count/count.h"

#include "storage/base/clock.h"
#include "storage/count/plan.h"
#include "storage/count/read.h"
#include "storage/read/listed_keys.h"
#include "storage/schema/key.h"

#define RECALLS 2 /* attempts; where late events come faster than that, all is read */

/* The keys of a shard that hold @metric. */
static enum storage_err count_keys(struct counter *c, struct count_job *job,
    const struct shard *shard, enum metric metric, struct counted_keys *counted)
{
    struct counted_bucket what = {.tag = c->core->partitions.tag[shard->partition],
        .kind = metric_kind(metric),
        .site = job->asked.site,
        .pages = shard->pages,
        .n_pages = counter_keys(shard, shard->metrics, metric)};
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; err == STORAGE_OK && what.n_pages > 0 && i < shard->cover.n; i++) {
        what.bucket = shard->cover.buckets[i];
        err = counted_keys_add(counted, &what);
    }
    return err;
}

/* The keys read. */
static enum storage_err count_all_keys(struct counter *c, struct count_job *job)
{
    size_t page_bytes = 0;
    enum storage_err err = STORAGE_OK;
    struct counted_keys counted = {.per_level = job->asked.per_level,
        .keys = job->asked.explain ? &job->asked.keys : NULL,
        .n = &job->asked.n_keys,
        .page_bytes = &page_bytes,
        .now_s = c->latest_s};
    for (size_t s = 0; s < c->n_shards; s++) {
        for (int metric = 0; err == STORAGE_OK && metric < METRICS; metric++) {
            err = count_keys(c, job, &c->shards[s], (enum metric)metric, &counted);
        }
    }
    if (err == STORAGE_TOO_BROAD) { /* the future, by minutes: another step would not help */
        job->used = STEP_NONE;
    }
    counted_keys_sort(job->asked.keys, job->asked.n_keys);
    return err;
}

static enum storage_err conclude(struct counter *c, struct count_job *job, struct window window)
{
    job->asked.answered = window;
    for (int metric = 0; metric < METRICS; metric++) {
        bool asked = (count_metrics(job) >> metric & 1) != 0;
        job->values[metric] = asked ? tally_total(&c->tally, (enum metric)metric) : 0;
    }
    job->value = job->values[job->metric];
    if (job->step != STEP_NONE) {
        for (size_t i = 0; c->tally.n_points == 1 && i < METRICS; i++) {
            c->tally.points[0].values[i] = job->values[i];
        }
        job->points = tally_take_points(&c->tally, &job->n_points);
    }
    atomic_fetch_add(&c->core->stats.queries, 1);
    atomic_fetch_add(&c->core->stats.query_keys, (int64_t)c->reads);
    return count_all_keys(c, job);
}

enum storage_err counter_run(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost)
{
    struct count_job *count = &job->u.count;
    struct window asked = count->asked.window;
    *ret_lost = false;
    c->forgetful = false;
    c->zone = site_zones_get(&c->core->sites, count->asked.site);
    if (!count_make_shards(c, count)) {
        return STORAGE_NOMEM;
    }
    for (unsigned attempt = 0; monotonic_ms() < job->deadline_ms; attempt++) {
        c->forgetful = attempt >= RECALLS;
        int64_t now_s = redis_clock_ms(&c->core->clock) / 1000;
        struct window window = asked;
        enum storage_err err = count_plan(c, count, now_s, &window);
        if (err == STORAGE_OK) {
            err = counter_read(c, session, job, ret_lost);
        }
        if (err != STORAGE_OK) {
            return err;
        }
        int64_t minute_end_s = bucket_at(zone_utc(), LEVEL_MINUTE, c->latest_s).end_s;
        bool moved_on = count->asked.to_is_now && minute_end_s > asked.to_s;
        if (!c->stale && !moved_on) {
            return conclude(c, count, window);
        }
        asked.to_s = moved_on ? minute_end_s : asked.to_s;
        atomic_fetch_add(&c->core->stats.query_replans, 1);
    }
    return STORAGE_LATE; /* rollups moved on faster than we could read */
}
