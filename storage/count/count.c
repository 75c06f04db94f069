#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/count/plan.h"
#include "storage/count/read.h"
#include "storage/read/listed_keys.h"
#include "storage/read/page_sets.h"
#include "storage/read/repeat.h"
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

static enum storage_err run(
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

static void free_question(void *question)
{
    counter_free(question);
}

enum storage_err count_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct count_job *count = &job->u.count;
    struct reader_scratch *scratch = &reader->scratch[STORAGE_COUNT];
    if (scratch->p == NULL) { /* no memory for it the last time is no reason for ever */
        *scratch = (struct reader_scratch){counter_new(reader->core), free_question};
    }
    if (scratch->p == NULL) {
        return STORAGE_NOMEM;
    }
    enum storage_err err = page_set_resolve(
        reader, job, &count->set, count->asked.site, &count->pages, &count->n_pages, ret_lost);
    return err == STORAGE_OK ? run(scratch->p, &reader->session, job, ret_lost) : err;
}

/* ---- questions that are the same ---- */

/* (Without a step the zone says nothing.) */
bool count_same(const struct storage_job *a, const struct storage_job *b)
{
    const struct count_job *x = &a->u.count;
    const struct count_job *y = &b->u.count;
    return window_question_same(&x->asked, &y->asked) && x->metric == y->metric &&
           x->all_metrics == y->all_metrics && x->step == y->step &&
           (x->step == STEP_NONE || x->zone == y->zone) && x->set.name.n == 0 &&
           y->set.name.n == 0 && same_pages(x->pages, x->n_pages, y->pages, y->n_pages);
}

uint64_t count_hash(const struct storage_job *job)
{
    const struct count_job *count = &job->u.count;
    return question_hash(&count->asked, count->pages, count->n_pages,
        (uint64_t)count->metric * 32 + (uint64_t)count->step * 2 + count->all_metrics);
}

bool count_share(const struct storage_job *from, struct storage_job *to)
{
    const struct count_job *answer = &from->u.count;
    struct count_job own = to->u.count;
    size_t n_bytes = answer->points == NULL ? 0 : answer->n_points * sizeof(*answer->points);
    struct count_point *points = n_bytes == 0 ? NULL : malloc(n_bytes);
    if (points == NULL && n_bytes > 0) {
        return false;
    }
    if (points != NULL) {
        memcpy(points, answer->points, n_bytes);
    }
    to->u.count = *answer; /* all of it, but for what belongs to one job: */
    to->u.count.asked.site = own.asked.site;
    to->u.count.asked.keys = NULL;
    to->u.count.asked.n_keys = 0;
    to->u.count.pages = own.pages;
    to->u.count.set = own.set;
    to->u.count.points = points;
    return true;
}
