#include "storage/count_cache.h"

#include "storage/count_series.h"
#include "storage/index.h"

bool count_is_closed(
    const struct zone *zone, const struct rollup_state *state, struct bucket bucket)
{
    if (bucket.level == LEVEL_MINUTE) {
        bucket = bucket_at(zone, LEVEL_HOUR, bucket.start_s);
    }
    return closed_for_readers(state, bucket);
}

static bool add_run(struct shard *shard, size_t first, size_t point)
{
    if (!array_reserve(&shard->runs, &shard->runs_capacity, shard->n_runs, sizeof(*shard->runs))) {
        return false;
    }
    shard->runs[shard->n_runs++] = (struct run){.first = first, .n = 1, .point = point};
    return true;
}

/* Those of buckets [first, end).  (There may be gaps between the buckets of a rest.) */
static bool find_runs(
    const struct zone *zone, struct shard *shard, size_t first, size_t end, size_t point)
{
    bool in_run = false;
    for (size_t i = first; i < end; i++) {
        struct bucket bucket = shard->cover.buckets[i];
        bool closed = count_is_closed(zone, &shard->view.state, bucket);
        bool same = in_run && closed && bucket.level == shard->cover.buckets[i - 1].level &&
                    bucket.start_s == shard->cover.buckets[i - 1].end_s;
        if (same) {
            shard->runs[shard->n_runs - 1].n++;
        } else if (closed && !add_run(shard, i, point)) {
            return false;
        }
        in_run = closed;
    }
    return true;
}

struct cache_id count_id(struct counter *c, const struct count_job *job, unsigned partition,
    enum metric metric, const struct slice *const *pages, size_t n_pages)
{
    buffer_clear(&c->out, 64 * 1024);
    resp_decimal(&c->out, partition);
    resp_decimal(&c->out, metric_kind(metric));
    resp_word(&c->out, job->site.p, job->site.n);
    for (size_t p = 0; p < n_pages; p++) {
        resp_word(&c->out, pages[p]->p, pages[p]->n);
    }
    struct cache_id id = cache_id(c->core->cache, c->out.p, c->out.n);
    buffer_clear(&c->out, 64 * 1024);
    return id;
}

static struct cache_id run_id(const struct counter *c, const struct cache_id *shard_name,
    const struct cover *cover, const struct run *run)
{
    struct {
        struct cache_id shard;
        int64_t level, start_s, end_s;
    } name = {*shard_name, cover->buckets[run->first].level, cover->buckets[run->first].start_s,
        cover->buckets[run->first + run->n - 1].end_s};
    return cache_id(c->core->cache, &name, sizeof(name));
}

/* What is remembered goes into the tally of one metric. */
struct use {
    struct tally *tally;
    enum metric metric;
    size_t point;
    bool nomem;
    uint64_t sum;
};

static void use_sketch(void *data, const void *value, size_t n)
{
    struct use *use = data; /* it was encoded here: no string is refused */
    (void)tally_sketch(use->tally, use->metric, use->point, value, n, &use->nomem);
}

static void use_sum(void *data, const void *value, size_t n)
{
    struct use *use = data;
    memcpy(&use->sum, value, n);
}

/* Sketches first: to unite one with what will be read of it once more changes nothing, so sums are
 * taken when all is there. */
static bool recall_run(struct counter *c, const struct shard *shard, struct run *run)
{
    struct use uses[METRICS];
    bool all = true;
    for (int sketch = 1; sketch >= 0; sketch--) {
        for (int m = 0; m < METRICS; m++) {
            enum metric metric = (enum metric)m;
            if ((shard->metrics >> m & 1) == 0 || metric_is_sketch(metric) != (sketch == 1)) {
                continue;
            }
            uses[m] = (struct use){&c->tally, metric, run->point, false, 0};
            bool found = all && cache_get(c->core->cache, &run->id[m], &shard->view.ver,
                                    sketch == 1 ? use_sketch : use_sum, &uses[m]);
            all = found && !uses[m].nomem;
            atomic_fetch_add(found ? &c->core->stats.cache_hits : &c->core->stats.cache_misses, 1);
        }
    }
    for (int m = 0; all && m < METRICS; m++) {
        if ((shard->metrics >> m & 1) != 0 && !metric_is_sketch((enum metric)m)) {
            tally_sum(&c->tally, (enum metric)m, run->point, uses[m].sum);
        }
    }
    return all;
}

bool count_recall_runs(struct counter *c, const struct count_job *job, struct shard *shard,
    size_t first, size_t end, size_t point)
{
    size_t before = shard->n_runs;
    struct cache_id names[METRICS];
    if (!find_runs(c->zone, shard, first, end, point)) {
        return false;
    }
    for (int m = 0; m < METRICS && shard->n_runs > before; m++) {
        if ((shard->metrics >> m & 1) != 0) {
            names[m] =
                count_id(c, job, shard->partition, (enum metric)m, shard->pages, shard->n_pages);
        }
    }
    for (size_t i = before; i < shard->n_runs; i++) {
        struct run *run = &shard->runs[i];
        for (int m = 0; m < METRICS; m++) {
            if ((shard->metrics >> m & 1) != 0) {
                run->id[m] = run_id(c, &names[m], &shard->cover, run);
            }
        }
        run->recalled = recall_run(c, shard, run);
        shard->recalled = shard->recalled || run->recalled;
    }
    return true;
}

static void forget(struct counter *c)
{
    series_drop_rest(c);
    for (size_t i = 0; i < c->n_shards; i++) {
        c->shards[i].n_runs = 0;
        c->shards[i].recalled = false;
        c->shards[i].seen = c->shards[i].mixed = false;
    }
    for (size_t i = 0; i < c->tally.n_points; i++) {
        c->known[i] = false;
    }
}

void count_recall(struct counter *c, const struct count_job *job)
{
    bool ok = true;
    bool may = c->core->cache != NULL && !c->by_script && !c->forgetful;
    forget(c);
    for (size_t i = 0; i < c->n_shards; i++) {
        may = may && (c->shards[i].view.known || c->tally.n_points == 1);
    }
    if (may && c->tally.n_points > 1) {
        ok = series_recall(c, job);
    }
    for (size_t i = 0; may && c->tally.n_points == 1 && i < c->n_shards; i++) {
        struct shard *shard = &c->shards[i];
        ok = ok && (!shard->view.known || count_recall_runs(c, job, shard, 0, shard->cover.n, 0));
    }
    if (!ok) {
        forget(c);
        tally_clear(&c->tally);
    }
}

struct run *count_run(const struct shard *shard, size_t i)
{
    size_t low = 0;
    size_t high = shard->n_runs; /* those before low end by i, those from high on begin behind it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct run *run = &shard->runs[middle];
        if (i < run->first) {
            high = middle;
        } else if (i - run->first >= run->n) {
            low = middle + 1;
        } else {
            return run;
        }
    }
    return NULL;
}

bool count_remember(struct counter *c, enum metric metric, const struct run *run,
    const struct partition_view *view, const struct shard *shard)
{
    bool sketch = metric_is_sketch(metric);
    bool provable = view->known && ver_equal(&c->run_ver[metric], &view->ver);
    for (size_t i = 0; provable && i < run->n; i++) {
        provable = count_is_closed(c->zone, &view->state, shard->cover.buckets[run->first + i]);
    }
    if (provable && sketch) {
        uint8_t text[HLL_DENSE_SIZE];
        cache_put(
            c->core->cache, &run->id[metric], &view->ver, text, hll_encode(&c->run[metric], text));
    } else if (provable) {
        cache_put(c->core->cache, &run->id[metric], &view->ver, &c->run_sum[metric],
            sizeof(c->run_sum[metric]));
    }
    if (sketch) {
        return tally_unite(&c->tally, metric, run->point, &c->run[metric]);
    }
    tally_sum(&c->tally, metric, run->point, c->run_sum[metric]);
    return true;
}
