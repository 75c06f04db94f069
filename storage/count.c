#include "storage/count.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/count_read.h"
#include "storage/count_series.h"
#include "storage/counted_keys.h"
#include "storage/index.h"
#include "storage/key.h"
#include "storage/plan_window.h"
#include "storage/series_window.h"

#define SKETCHES_MAX 200000  /* in one question */
#define SUMS_MAX     2000000 /* fields: a set of 1,000 pages, in all partitions, over a day */
#define RECALLS      2       /* attempts; where late events come faster than that, all is read */

struct counter *counter_new(struct core *core)
{
    struct counter *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->core = core;
        c->zone = zone_utc();
    }
    return c;
}

static void drop_shards(struct counter *c)
{
    series_drop_rest(c);
    for (size_t i = 0; i < c->n_shards; i++) {
        free(c->shards[i].pages);
        free(c->shards[i].runs);
        free(c->shards[i].ends);
        cover_release(&c->shards[i].cover);
    }
    c->n_shards = 0;
}

void counter_free(struct counter *c)
{
    if (c != NULL) {
        drop_shards(c);
        tally_release(&c->tally);
        free(c->shards);
        free(c->rest);
        free(c->known);
        free(c->chunks);
        buffer_release(&c->out);
        free(c);
    }
}

/* ---- planning ---- */

static bool has_page(const struct shard *shard, struct slice page)
{
    for (size_t i = 0; i < shard->n_pages; i++) {
        if (slice_equal(*shard->pages[i], page)) {
            return true;
        }
    }
    return false;
}

static struct shard *new_shard(struct counter *c, unsigned partition, unsigned metrics)
{
    if (!array_reserve(&c->shards, &c->shards_capacity, c->n_shards, sizeof(*c->shards))) {
        return NULL;
    }
    struct shard *shard = &c->shards[c->n_shards++];
    *shard = (struct shard){.partition = partition, .metrics = metrics};
    cover_init(&shard->cover);
    return shard;
}

/* Ask a partition for a page.  A page asked for twice is one page: sums must not count it twice. */
static bool ask_partition(
    struct counter *c, unsigned partition, unsigned metrics, const struct slice *page)
{
    struct shard *shard = NULL;
    for (size_t i = 0; i < c->n_shards; i++) {
        if (c->shards[i].partition != partition || c->shards[i].metrics != metrics) {
            continue;
        }
        if (has_page(&c->shards[i], *page)) {
            return true;
        }
        shard = &c->shards[i];
    }
    bool sketches = (metrics & METRICS_SKETCHES) != 0;
    if (shard == NULL || (sketches && shard->n_pages == SHARD_PAGES)) {
        shard = new_shard(c, partition, metrics);
    }
    if (shard == NULL || !array_reserve(&shard->pages, &shard->pages_capacity, shard->n_pages,
                             sizeof(struct slice *))) {
        return false;
    }
    shard->pages[shard->n_pages++] = page;
    return true;
}

static unsigned metrics_asked(const struct count_job *job)
{
    return job->all_metrics ? METRICS_ALL : 1u << job->metric;
}

/* What partition 0 is asked, all are. */
static bool spread_shard(struct counter *c, unsigned metrics)
{
    size_t first = 0;
    while (c->shards[first].partition != 0 || c->shards[first].metrics != metrics) {
        first++;
    }
    size_t n_pages = c->shards[first].n_pages;
    for (unsigned p = 1; p < c->core->partitions.n; p++) {
        struct shard *shard = new_shard(c, p, metrics);
        const struct slice **pages =
            shard == NULL ? NULL : malloc(n_pages * sizeof(struct slice *));
        if (pages == NULL) {
            return false;
        }
        for (size_t i = 0; i < n_pages; i++) {
            pages[i] = c->shards[first].pages[i];
        }
        shard->pages = pages;
        shard->n_pages = shard->pages_capacity = n_pages;
    }
    return true;
}

/* Which partition is asked for which pages: a page's own one; for visits, which lie with the
 * visitors, all. */
static bool make_shards(struct counter *c, const struct count_job *job)
{
    const struct slice *pages = job->n_pages == 0 ? &counter_whole_site : job->pages;
    size_t n_pages = job->n_pages == 0 ? 1 : job->n_pages;
    unsigned own = metrics_asked(job) & METRICS_OF_PAGE;
    unsigned spread = metrics_asked(job) & ~METRICS_OF_PAGE;
    drop_shards(c);
    for (size_t i = 0; i < n_pages; i++) {
        unsigned home = partition_of(&c->core->partitions, page_hash(job->site, pages[i]));
        if ((own != 0 && !ask_partition(c, home, own, &pages[i])) ||
            (spread != 0 && !ask_partition(c, 0, spread, &pages[i]))) {
            return false;
        }
    }
    return spread == 0 || spread_shard(c, spread);
}

/* Widen the window until every shard can tile it. */
static bool widen(const struct counter *c, int64_t now_s, struct window *window)
{
    uint64_t partitions = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        partitions |= UINT64_C(1) << c->shards[i].partition;
    }
    return plan_widen(c->core, c->zone, partitions, now_s, window);
}

/* A shard before @shard whose plan is @shard's too: partitions are mostly rolled up alike. */
static const struct shard *planned_alike(const struct counter *c, const struct shard *shard)
{
    for (const struct shard *other = c->shards; other < shard; other++) {
        if (memcmp(&other->view.state, &shard->view.state, sizeof(shard->view.state)) == 0 &&
            memcmp(&other->view.retention, &shard->view.retention, sizeof(shard->view.retention)) ==
                0) {
            return other;
        }
    }
    return NULL;
}

static bool copy_plan(const struct counter *c, const struct shard *from, struct shard *to)
{
    size_t n = c->tally.n_points;
    if (!cover_copy(&from->cover, &to->cover)) {
        return false;
    }
    while (to->ends_capacity < n) {
        if (!array_reserve(&to->ends, &to->ends_capacity, to->ends_capacity, sizeof(*to->ends))) {
            return false;
        }
    }
    memcpy(to->ends, from->ends, n * sizeof(*to->ends));
    return true;
}

/* The covers of all points, one behind the other. */
static enum storage_err plan_shard(struct counter *c, struct shard *shard, int64_t now_s)
{
    shard->view = core_view(c->core, shard->partition);
    const struct shard *alike = planned_alike(c, shard);
    if (alike != NULL) {
        return copy_plan(c, alike, shard) ? STORAGE_OK : STORAGE_NOMEM;
    }
    struct cover_basis basis = plan_basis(c->zone, &shard->view, now_s);
    cover_clear(&shard->cover);
    for (size_t i = 0; i < c->tally.n_points; i++) {
        enum storage_err err =
            plan_error(cover_append(&basis, c->tally.points[i].window, BUCKETS_MAX, &shard->cover));
        if (err != STORAGE_OK) {
            return err;
        }
        if (!array_reserve(&shard->ends, &shard->ends_capacity, i, sizeof(*shard->ends))) {
            return STORAGE_NOMEM;
        }
        shard->ends[i] = shard->cover.n;
    }
    return STORAGE_OK;
}

/* Plan for @window, cut by @step. */
static enum storage_err plan(struct counter *c, const struct count_job *job, enum step step,
    struct window window, int64_t now_s)
{
    enum storage_err err = STORAGE_OK;
    size_t sketches = 0;
    size_t sums = 0;
    if (!tally_cut(&c->tally, job->zone, step, window)) {
        return STORAGE_NOMEM;
    }
    while (c->known_capacity < c->tally.n_points) {
        if (!array_reserve(&c->known, &c->known_capacity, c->known_capacity, sizeof(*c->known))) {
            return STORAGE_NOMEM;
        }
    }
    for (size_t i = 0; err == STORAGE_OK && i < c->n_shards; i++) {
        struct shard *shard = &c->shards[i];
        err = plan_shard(c, shard, now_s);
        sketches += counter_reads(shard, shard->metrics & METRICS_SKETCHES, shard->cover.n);
        sums += counter_reads(shard, shard->metrics & ~METRICS_SKETCHES, shard->cover.n);
    }
    bool too_many = sketches > SKETCHES_MAX || sums > SUMS_MAX;
    return err == STORAGE_OK && too_many ? STORAGE_TOO_BROAD : err;
}

/* The finest step from @step on that works for @window, which works as a whole. */
static enum storage_err plan_coarser(struct counter *c, const struct count_job *job, enum step step,
    struct window window, int64_t now_s, enum step *ret)
{
    enum storage_err err = STORAGE_TOO_FINE;
    for (*ret = step; *ret <= STEP_MONTH; (*ret)++) {
        err = plan(c, job, *ret, window, now_s);
        if (err != STORAGE_NOT_KEPT) {
            return err;
        }
    }
    *ret = STEP_NONE;
    return STORAGE_TOO_FINE;
}

/* Plan a series over @window, which works as a whole. */
static enum storage_err plan_series(
    struct counter *c, struct count_job *job, struct window window, int64_t now_s)
{
    enum step finest = STEP_NONE;
    job->used = job->step;
    if (job->step == STEP_AUTO) {
        finest = step_fitting(job->zone, window, STEP_AUTO_MAX);
        job->used = finest;
        return finest == STEP_NONE ? STORAGE_TOO_MANY
                                   : plan_coarser(c, job, finest, window, now_s, &job->used);
    }
    if (step_count(job->zone, job->step, window, STEP_POINTS_MAX) > STEP_POINTS_MAX) {
        finest = step_fitting(job->zone, window, STEP_POINTS_MAX);
        job->used = finest;
        if (finest != STEP_NONE &&
            plan_coarser(c, job, finest, window, now_s, &job->used) != STORAGE_OK) {
            job->used = STEP_NONE;
        }
        return STORAGE_TOO_MANY;
    }
    enum storage_err err = plan(c, job, job->step, window, now_s);
    if (err == STORAGE_NOT_KEPT) {
        err = plan_coarser(c, job, job->step, window, now_s, &job->used);
        return err == STORAGE_OK ? STORAGE_TOO_FINE : err;
    }
    return err;
}

/* A later part of @outer whose series works; from_s == to_s if there is none. */
static struct window later_part(
    struct counter *c, const struct count_job *job, struct window outer, int64_t now_s)
{
    struct count_job copy = *job;
    struct window part;
    int first = job->step == STEP_AUTO ? STEP_MINUTE : (int)job->step;
    int last = job->step == STEP_AUTO ? STEP_MONTH : (int)job->step;
    for (int step = first; step <= last; step++) {
        if (series_window(c, job->zone, (enum step)step, outer, now_s, &part) &&
            plan_series(c, &copy, part, now_s) == STORAGE_OK) {
            return part;
        }
    }
    return (struct window){outer.from_s, outer.from_s};
}

/* The window is not kept: what could be asked for with the same step?  @outer can be tiled. */
static enum storage_err offer_series(
    struct counter *c, struct count_job *job, struct window outer, int64_t now_s)
{
    struct count_job copy = *job;
    enum storage_err err = plan_series(c, &copy, outer, now_s);
    job->used = job->step;
    job->outer_works = err == STORAGE_OK;
    job->answered = outer;
    if (err == STORAGE_OK) {
        return STORAGE_NOT_KEPT;
    }
    if (err != STORAGE_TOO_FINE && err != STORAGE_TOO_MANY) {
        return err;
    }
    struct window part = later_part(c, job, outer, now_s);
    if (part.from_s == part.to_s && copy.used != STEP_NONE) {
        job->used = copy.used;
    } else {
        job->answered = part;
    }
    return STORAGE_NOT_KEPT;
}

/* ---- the answer ---- */

/* The keys of a shard that hold @metric. */
static bool count_keys(struct counter *c, struct count_job *job, const struct shard *shard,
    enum metric metric, struct counted_keys *counted)
{
    struct counted_bucket what = {.tag = c->core->partitions.tag[shard->partition],
        .kind = metric_kind(metric),
        .site = job->site,
        .pages = shard->pages,
        .n_pages = counter_keys(shard, shard->metrics, metric)};
    for (size_t i = 0; what.n_pages > 0 && i < shard->cover.n; i++) {
        what.bucket = shard->cover.buckets[i];
        if (!counted_keys_add(counted, &what)) {
            return false;
        }
    }
    return true;
}

/* The keys read. */
static bool count_all_keys(struct counter *c, struct count_job *job)
{
    struct counted_keys counted = {.per_level = job->per_level,
        .keys = job->explain ? &job->keys : NULL,
        .n = &job->n_keys,
        .now_s = c->latest_s};
    for (size_t s = 0; s < c->n_shards; s++) {
        for (int metric = 0; metric < METRICS; metric++) {
            if (!count_keys(c, job, &c->shards[s], (enum metric)metric, &counted)) {
                return false;
            }
        }
    }
    counted_keys_sort(job->keys, job->n_keys);
    return true;
}

static enum storage_err conclude(struct counter *c, struct count_job *job, struct window window)
{
    job->answered = window;
    for (int metric = 0; metric < METRICS; metric++) {
        bool asked = (metrics_asked(job) >> metric & 1) != 0;
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
    return count_all_keys(c, job) ? STORAGE_OK : STORAGE_NOMEM;
}

/* Plan for @window, or for what is answerable around it. */
static enum storage_err plan_some(
    struct counter *c, struct count_job *job, int64_t now_s, struct window *window)
{
    enum storage_err err = plan(c, job, STEP_NONE, *window, now_s);
    struct window outer = *window;
    if (err == STORAGE_NOT_KEPT) {
        if (!widen(c, now_s, &outer)) {
            job->answered = (struct window){window->from_s, window->from_s};
            return err;
        }
        if (!job->round_outer) {
            job->answered = outer;
            job->outer_works = true;
            return job->step == STEP_NONE ? err : offer_series(c, job, outer, now_s);
        }
        *window = outer;
        err = plan(c, job, STEP_NONE, outer, now_s);
    }
    if (err == STORAGE_OK && job->step != STEP_NONE) {
        err = plan_series(c, job, *window, now_s);
        bool none = err == STORAGE_TOO_FINE && job->used == STEP_NONE;
        job->answered = none ? later_part(c, job, *window, now_s) : (struct window){0, 0};
    }
    return err;
}

enum storage_err counter_run(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost)
{
    struct count_job *count = &job->u.count;
    struct window asked = count->window;
    *ret_lost = false;
    c->forgetful = false;
    c->zone = site_zones_get(&c->core->sites, count->site);
    if (!make_shards(c, count)) {
        return STORAGE_NOMEM;
    }
    for (unsigned attempt = 0; monotonic_ms() < job->deadline_ms; attempt++) {
        c->forgetful = attempt >= RECALLS;
        int64_t now_s = redis_clock_ms(&c->core->clock) / 1000;
        struct window window = asked;
        enum storage_err err = plan_some(c, count, now_s, &window);
        if (err == STORAGE_OK) {
            err = counter_read(c, session, job, ret_lost);
        }
        if (err != STORAGE_OK) {
            return err;
        }
        int64_t minute_end_s = bucket_at(zone_utc(), LEVEL_MINUTE, c->latest_s).end_s;
        bool moved_on = count->to_is_now && minute_end_s > asked.to_s;
        if (!c->stale && !moved_on) {
            return conclude(c, count, window);
        }
        asked.to_s = moved_on ? minute_end_s : asked.to_s;
        atomic_fetch_add(&c->core->stats.query_replans, 1);
    }
    return STORAGE_LATE; /* rollups moved on faster than we could read */
}
