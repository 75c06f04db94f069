#include "storage/count/series.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/count/recall.h"
#include "storage/read/plan.h"
#include "storage/read/run.h"
#include "storage/redis/resp.h"

/* ---- names and proofs ---- */

/* What all points have in common, for each metric. */
struct names {
    unsigned metrics; /* a set: those that are asked for */
    struct cache_id of[METRICS];
    struct ver proof[METRICS];
};

/* A name for each metric that does not depend on how the pages are spread over shards. */
static void name_series(struct counter *c, const struct count_job *job, struct names *names)
{
    const struct slice *whole = &counter_whole_site;
    const struct slice **pages = malloc((job->n_pages + 1) * sizeof(struct slice *));
    names->metrics = 0;
    if (pages == NULL) {
        return; /* then nothing is remembered */
    }
    pages[0] = whole;
    for (size_t i = 0; i < job->n_pages; i++) {
        pages[i] = &job->pages[i];
    }
    for (size_t i = 0; i < c->n_shards; i++) {
        names->metrics |= c->shards[i].metrics;
    }
    for (int m = 0; m < METRICS; m++) {
        if ((names->metrics >> m & 1) != 0) {
            names->of[m] = count_id(c, job, PARTITIONS_MAX, (enum metric)m, pages,
                job->n_pages == 0 ? 1 : job->n_pages);
        }
    }
    free(pages);
}

/* One `ver` for those of all shards that are asked for @metric; n 0: there is no proof.  @seen: of
 * the replies, else of the plan. */
static struct ver combine_vers(struct counter *c, enum metric metric, bool seen)
{
    struct ver proof = {.n = 0};
    buffer_clear(&c->out, 64 * 1024);
    for (size_t i = 0; i < c->n_shards; i++) {
        const struct shard *shard = &c->shards[i];
        const struct ver *ver = closed_ver(seen ? &shard->seen_view : &shard->view, PROOF_VER);
        if ((shard->metrics >> metric & 1) == 0) {
            continue;
        }
        if (ver->n == 0 || (seen && shard->mixed)) {
            return proof;
        }
        resp_decimal(&c->out, shard->partition);
        resp_word(&c->out, ver->text, ver->n);
    }
    if (!c->out.failed) {
        struct cache_id id = cache_id(c->core->cache, c->out.p, c->out.n);
        proof.n = sizeof(id.bytes);
        memcpy(proof.text, id.bytes, sizeof(id.bytes));
    }
    buffer_clear(&c->out, 64 * 1024);
    return proof;
}

static struct cache_id point_id(
    const struct counter *c, const struct cache_id *series, struct window window)
{
    struct {
        struct cache_id series;
        int64_t from_s, to_s;
    } name = {*series, window.from_s, window.to_s};
    return cache_id(c->core->cache, &name, sizeof(name));
}

/* ---- recalling ---- */

static void take_figure(void *data, const void *value, size_t n)
{
    memcpy(data, value, n);
}

static bool recall_point(struct counter *c, const struct names *names, size_t point)
{
    uint64_t values[METRICS];
    for (int m = 0; m < METRICS; m++) {
        if ((names->metrics >> m & 1) == 0) {
            continue;
        }
        struct cache_id id = point_id(c, &names->of[m], c->tally.points[point].window);
        if (!cache_get(c->core->cache, &id, &names->proof[m], take_figure, &values[m])) {
            return false;
        }
    }
    for (int m = 0; m < METRICS; m++) {
        if ((names->metrics >> m & 1) != 0) {
            tally_known(&c->tally, (enum metric)m, point, values[m]);
            atomic_fetch_add(&c->core->stats.cache_hits, 1);
        }
    }
    return true;
}

/* The point behind the stretch of known (or unknown) ones that begins at @point. */
static size_t stretch_end(const struct counter *c, size_t point)
{
    size_t end = point + 1;
    while (end < c->tally.n_points && c->known[end] == c->known[point]) {
        end++;
    }
    return end;
}

static bool skip_points(struct shard *shard, size_t from, size_t to)
{
    if (!array_reserve(&shard->runs, &shard->runs_capacity, shard->n_runs, sizeof(*shard->runs))) {
        return false;
    }
    size_t first = from == 0 ? 0 : shard->ends[from - 1];
    shard->runs[shard->n_runs++] = (struct run){.first = first,
        .n = shard->ends[to - 1] - first,
        .point = from,
        .recalled = true,
        .proof = PROOF_VER};
    shard->recalled |= 1u << PROOF_VER;
    return true;
}

/* The runs of one shard: those of the first and the last point, if these are not known, and all
 * points that are. */
static bool find_shard_runs(struct counter *c, const struct count_job *job, struct shard *shard)
{
    size_t last = c->tally.n_points - 1;
    if (!c->known[0] && !count_recall_runs(c, job, shard, 0, shard->ends[0], 0)) {
        return false;
    }
    for (size_t point = 0; point <= last;) {
        size_t end = stretch_end(c, point);
        if (c->known[point] && !skip_points(shard, point, end)) {
            return false;
        }
        point = end;
    }
    return c->known[last] ||
           count_recall_runs(c, job, shard, shard->ends[last - 1], shard->cover.n, last);
}

/* What the known points add to the total of a shard's sketches. */
static bool plan_rest(struct counter *c, const struct count_job *job, const struct shard *shard)
{
    struct shard rest = {.partition = shard->partition,
        .metrics = shard->metrics & METRICS_SKETCHES,
        .pages = shard->pages,
        .n_pages = shard->n_pages,
        .view = shard->view,
        .rest = true};
    struct cover_basis basis =
        plan_basis(c->zone, &rest.view, redis_clock_ms(&c->core->clock) / 1000);
    bool ok = rest.metrics == 0 ||
              array_reserve(&c->rest, &c->rest_capacity, c->n_rest, sizeof(*c->rest));
    cover_init(&rest.cover);
    for (size_t point = 0; ok && rest.metrics != 0 && point < c->tally.n_points;) {
        size_t end = stretch_end(c, point);
        struct window window = {
            c->tally.points[point].window.from_s, c->tally.points[end - 1].window.to_s};
        ok = !c->known[point] || cover_append(&basis, window, BUCKETS_MAX, &rest.cover) == COVER_OK;
        point = end;
    }
    ok = ok && count_recall_runs(c, job, &rest, 0, rest.cover.n, TALLY_TOTAL);
    if (!ok || rest.cover.n == 0) {
        free(rest.runs);
        cover_release(&rest.cover);
        return ok;
    }
    c->rest[c->n_rest++] = rest;
    return true;
}

bool series_recall(struct counter *c, const struct count_job *job)
{
    struct names names;
    bool ok = true;
    bool any = false;
    name_series(c, job, &names);
    for (int m = 0; m < METRICS; m++) {
        if ((names.metrics >> m & 1) != 0) {
            names.proof[m] = combine_vers(c, (enum metric)m, false);
        }
    }
    for (size_t i = 0; names.metrics != 0 && i < c->tally.n_points; i++) {
        c->known[i] = recall_point(c, &names, i);
        any = any || c->known[i];
    }
    for (size_t i = 0; ok && i < c->n_shards; i++) {
        ok = find_shard_runs(c, job, &c->shards[i]) && (!any || plan_rest(c, job, &c->shards[i]));
    }
    return ok;
}

/* ---- remembering ---- */

/* Is all of a point over, by the replies? */
static bool is_over(const struct counter *c, size_t point)
{
    for (size_t s = 0; s < c->n_shards; s++) {
        const struct shard *shard = &c->shards[s];
        bool alike = s > 0 &&
                     memcmp(&shard->seen_view.state, &shard[-1].seen_view.state,
                         sizeof(shard->seen_view.state)) == 0 &&
                     shard->ends[point] == shard[-1].ends[point];
        size_t i = point == 0 ? 0 : shard->ends[point - 1];
        for (; !alike && i < shard->ends[point]; i++) {
            if (closed_proof(c->zone, &shard->seen_view, shard->cover.buckets[i]) != PROOF_VER) {
                return false;
            }
        }
    }
    return true;
}

void series_remember(struct counter *c, const struct count_job *job)
{
    struct names names;
    if (c->core->cache == NULL || c->by_script || c->tally.n_points < 2) {
        return;
    }
    name_series(c, job, &names);
    for (int m = 0; m < METRICS; m++) {
        if ((names.metrics >> m & 1) != 0) {
            names.proof[m] = combine_vers(c, (enum metric)m, true);
            names.metrics &= names.proof[m].n == 0 ? ~(1u << m) : ~0u;
        }
    }
    for (size_t i = 0; names.metrics != 0 && i < c->tally.n_points; i++) {
        if (c->known[i] || !is_over(c, i)) {
            continue;
        }
        for (int m = 0; m < METRICS; m++) {
            if ((names.metrics >> m & 1) != 0) {
                struct cache_id id = point_id(c, &names.of[m], c->tally.points[i].window);
                cache_put(c->core->cache, &id, &names.proof[m], &c->tally.points[i].values[m],
                    sizeof(c->tally.points[i].values[m]));
                atomic_fetch_add(&c->core->stats.cache_misses, 1);
            }
        }
    }
}
