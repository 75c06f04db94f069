#include "storage/count/plan.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/count/series_window.h"
#include "storage/read/listed_keys.h"
#include "storage/read/plan.h"

#define SKETCHES_MAX  200000      /* in one question */
#define SUMS_MAX      2000000     /* fields: a set of 1,000 pages, in all partitions, over a day */
#define SUM_BYTES_MAX (128 << 20) /* of their names: Redis reads some 70 MB of them a second */

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

unsigned count_metrics(const struct count_job *job)
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
bool count_make_shards(struct counter *c, const struct count_job *job)
{
    const struct slice *pages = job->n_pages == 0 ? &counter_whole_site : job->pages;
    size_t n_pages = job->n_pages == 0 ? 1 : job->n_pages;
    unsigned own = count_metrics(job) & METRICS_OF_PAGE;
    unsigned spread = count_metrics(job) & ~METRICS_OF_PAGE;
    counter_drop_shards(c);
    for (size_t i = 0; i < n_pages; i++) {
        unsigned home = partition_of(&c->core->partitions, page_hash(job->asked.site, pages[i]));
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

/* Could another step help? */
static bool is_about_step(enum storage_err err)
{
    return err == STORAGE_TOO_FINE || err == STORAGE_TOO_MANY || err == STORAGE_TOO_BROAD;
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

/* What a plan takes. */
struct load {
    size_t sketches, sums; /* reads */
    size_t sum_bytes;      /* of names in the commands that ask for sums */
    size_t keys;           /* that explain would list */
    size_t key_bytes;      /* of pages' names in these */
};

static void add_load(struct load *load, const struct shard *shard)
{
    size_t n = shard->cover.n;
    size_t sums = counter_reads(shard, shard->metrics & ~METRICS_SKETCHES, n);
    load->sketches += counter_reads(shard, shard->metrics & METRICS_SKETCHES, n);
    load->sums += sums;
    for (size_t i = 0; sums > 0 && i < shard->n_pages; i++) {
        load->sum_bytes += shard->pages[i]->n * (sums / shard->n_pages);
    }
    for (int metric = 0; metric < METRICS; metric++) {
        load->keys += n * counter_keys(shard, shard->metrics, (enum metric)metric);
    }
    size_t sketches = counter_reads(shard, shard->metrics & METRICS_SKETCHES, n);
    for (size_t i = 0; sketches > 0 && i < shard->n_pages; i++) {
        load->key_bytes += shard->pages[i]->n * (sketches / shard->n_pages);
    }
}

static bool is_too_much(const struct load *load, bool explain)
{
    return load->sketches > SKETCHES_MAX || load->sums > SUMS_MAX ||
           load->sum_bytes > SUM_BYTES_MAX ||
           (explain && (load->keys > COUNTED_KEYS_MAX || load->key_bytes > COUNTED_BYTES_MAX));
}

/* Plan for @window, cut by @step. */
static enum storage_err plan(struct counter *c, const struct count_job *job, enum step step,
    struct window window, int64_t now_s)
{
    enum storage_err err = STORAGE_OK;
    struct load load = {0};
    if (!tally_cut(&c->tally, job->zone, step, window)) {
        return STORAGE_NOMEM;
    }
    while (c->known_capacity < c->tally.n_points) {
        if (!array_reserve(&c->known, &c->known_capacity, c->known_capacity, sizeof(*c->known))) {
            return STORAGE_NOMEM;
        }
    }
    /* no further once it is too much: the plans of a thousand pages take memory, too */
    for (size_t i = 0; err == STORAGE_OK && i < c->n_shards; i++) {
        err = plan_shard(c, &c->shards[i], now_s);
        add_load(&load, &c->shards[i]);
        err = err == STORAGE_OK && is_too_much(&load, job->asked.explain) ? STORAGE_TOO_BROAD : err;
    }
    return err;
}

/* The finest step from @step on that works for @window, which works as a whole. */
static enum storage_err plan_coarser(struct counter *c, const struct count_job *job, enum step step,
    struct window window, int64_t now_s, enum step *ret)
{
    enum storage_err none = STORAGE_TOO_FINE;
    for (*ret = step; *ret <= STEP_MONTH; (*ret)++) {
        enum storage_err err = plan(c, job, *ret, window, now_s);
        if (err != STORAGE_NOT_KEPT && err != STORAGE_TOO_BROAD) {
            return err;
        }
        none = err == STORAGE_TOO_BROAD ? err : none;
    }
    *ret = STEP_NONE;
    return none;
}

static enum storage_err plan_auto(
    struct counter *c, struct count_job *job, struct window window, int64_t now_s)
{
    enum step finest = step_fitting(job->zone, window, STEP_AUTO_MAX);
    return finest == STEP_NONE ? STORAGE_TOO_MANY
                               : plan_coarser(c, job, finest, window, now_s, &job->used);
}

static enum storage_err plan_step(
    struct counter *c, struct count_job *job, struct window window, int64_t now_s)
{
    if (step_count(job->zone, job->step, window, STEP_POINTS_MAX) > STEP_POINTS_MAX) {
        return STORAGE_TOO_MANY;
    }
    enum storage_err err = plan(c, job, job->step, window, now_s);
    return err == STORAGE_NOT_KEPT ? STORAGE_TOO_FINE : err;
}

/* Plan a series over @window, which works as a whole.  Where that cannot be, job->used is the
 * finest step that works, STEP_NONE if none does. */
static enum storage_err plan_series(
    struct counter *c, struct count_job *job, struct window window, int64_t now_s)
{
    job->used = job->step;
    enum storage_err err = job->step == STEP_AUTO ? plan_auto(c, job, window, now_s)
                                                  : plan_step(c, job, window, now_s);
    if (!is_about_step(err) || job->used == STEP_NONE) {
        return err;
    }
    enum step finest = step_fitting(job->zone, window, STEP_POINTS_MAX);
    job->used = STEP_NONE;
    if (finest != STEP_NONE &&
        plan_coarser(c, job, finest, window, now_s, &job->used) == STORAGE_NOMEM) {
        return STORAGE_NOMEM;
    }
    return err;
}

/* The longest part of @outer, up to its end, whose series works; from_s == to_s if there is none.
 */
static struct window later_part(
    struct counter *c, const struct count_job *job, struct window outer, int64_t now_s)
{
    struct count_job copy = *job;
    struct window part;
    struct window longest = {outer.to_s, outer.to_s};
    int first = job->step == STEP_AUTO ? STEP_MINUTE : (int)job->step;
    int last = job->step == STEP_AUTO ? STEP_MONTH : (int)job->step;
    for (int step = first; step <= last; step++) {
        if (series_window(c, job->zone, (enum step)step, outer, now_s, &part) &&
            part.from_s < longest.from_s && plan_series(c, &copy, part, now_s) == STORAGE_OK) {
            longest = part;
        }
    }
    return longest;
}

/* The window is not kept: what could be asked for instead?  @outer can be tiled: with the step, or
 * else a part of it; with another step; without one. */
static enum storage_err offer_series(
    struct counter *c, struct count_job *job, struct window outer, int64_t now_s)
{
    struct count_job copy = *job;
    enum storage_err err = plan_series(c, &copy, outer, now_s);
    job->used = job->step;
    job->outer_works = err == STORAGE_OK;
    job->asked.answered = outer;
    if (err == STORAGE_OK) {
        return STORAGE_NOT_KEPT;
    }
    if (!is_about_step(err)) {
        return err;
    }
    struct window part = later_part(c, job, outer, now_s);
    if (part.from_s < part.to_s) {
        job->asked.answered = part;
    } else {
        job->used = copy.used;
    }
    return STORAGE_NOT_KEPT;
}

enum storage_err count_plan(
    struct counter *c, struct count_job *job, int64_t now_s, struct window *window)
{
    enum storage_err err = plan(c, job, STEP_NONE, *window, now_s);
    struct window outer = *window;
    job->used = STEP_NONE;
    job->whole_works = false;
    if (err == STORAGE_NOT_KEPT) {
        if (!widen(c, now_s, &outer)) {
            job->asked.answered = (struct window){window->from_s, window->from_s};
            return err;
        }
        if (!job->asked.round_outer) {
            job->asked.answered = outer;
            job->outer_works = true;
            return job->step == STEP_NONE ? err : offer_series(c, job, outer, now_s);
        }
        *window = outer;
        err = plan(c, job, STEP_NONE, outer, now_s);
    }
    if (err == STORAGE_OK && job->step != STEP_NONE) {
        job->whole_works = true;
        err = plan_series(c, job, *window, now_s);
        bool none = err == STORAGE_TOO_FINE && job->used == STEP_NONE;
        job->asked.answered = none ? later_part(c, job, *window, now_s) : (struct window){0, 0};
    }
    return err;
}
