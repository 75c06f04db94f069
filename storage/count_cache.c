#include "storage/count_cache.h"

#include "storage/index.h"

/* Does `ver` tell of every change to @bucket from now on? */
static bool is_closed(
    const struct zone *zone, const struct rollup_state *state, struct bucket bucket)
{
    if (bucket.level == LEVEL_MINUTE) {
        bucket = bucket_at(zone, LEVEL_HOUR, bucket.start_s);
    }
    return closed_for_readers(state, bucket);
}

static bool add_run(struct shard *shard, size_t first)
{
    if (!array_reserve(&shard->runs, &shard->runs_capacity, shard->n_runs, sizeof(*shard->runs))) {
        return false;
    }
    shard->runs[shard->n_runs++] = (struct run){.first = first, .n = 1};
    return true;
}

static bool find_runs(
    const struct zone *zone, const struct rollup_state *state, struct shard *shard)
{
    bool in_run = false;
    for (size_t i = 0; i < shard->cover.n; i++) {
        struct bucket bucket = shard->cover.buckets[i];
        bool closed = is_closed(zone, state, bucket);
        bool same = in_run && closed && bucket.level == shard->cover.buckets[i - 1].level;
        if (same) {
            shard->runs[shard->n_runs - 1].n++;
        } else if (closed && !add_run(shard, i)) {
            return false;
        }
        in_run = closed;
    }
    return true;
}

/* Who is asked for what: all that runs of one shard have in common. */
static struct cache_id shard_id(
    struct counter *c, const struct count_job *job, const struct shard *shard)
{
    buffer_clear(&c->out, 64 * 1024);
    resp_decimal(&c->out, shard->partition);
    resp_decimal(&c->out, metric_kind(job->metric));
    resp_word(&c->out, job->site.p, job->site.n);
    for (size_t p = 0; p < shard->n_pages; p++) {
        resp_word(&c->out, shard->pages[p]->p, shard->pages[p]->n);
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
};

static void use_sketch(void *data, const void *value, size_t n)
{
    struct use *use = data;
    (void)hll_merge(&use->tally->total[use->metric], value, n); /* it was encoded here */
}

static void use_sum(void *data, const void *value, size_t n)
{
    struct use *use = data;
    uint64_t sum = 0;
    memcpy(&sum, value, n);
    tally_sum(use->tally, use->metric, 0, sum);
}

void count_recall(struct counter *c, const struct count_job *job, struct shard *shard)
{
    shard->n_runs = 0;
    shard->recalled = false;
    struct partition_view view = core_view(c->core, shard->partition);
    shard->ver = view.ver;
    bool plain = job->step == STEP_NONE && !job->all_metrics;
    if (c->core->cache == NULL || !plain || c->by_script || c->forgetful || !view.known ||
        !find_runs(c->zone, &view.state, shard)) {
        shard->n_runs = 0;
        return;
    }
    struct use use = {&c->tally, job->metric};
    struct cache_id name = {{0}};
    if (shard->n_runs > 0) {
        name = shard_id(c, job, shard);
    }
    for (size_t i = 0; i < shard->n_runs; i++) {
        struct run *run = &shard->runs[i];
        run->id = run_id(c, &name, &shard->cover, run);
        run->recalled = cache_get(c->core->cache, &run->id, &view.ver,
            metric_is_sketch(job->metric) ? use_sketch : use_sum, &use);
        shard->recalled = shard->recalled || run->recalled;
        atomic_fetch_add(
            run->recalled ? &c->core->stats.cache_hits : &c->core->stats.cache_misses, 1);
    }
}

struct run *count_run(const struct shard *shard, size_t i)
{
    for (size_t r = 0; r < shard->n_runs; r++) { /* few */
        struct run *run = &shard->runs[r];
        if (i >= run->first && i - run->first < run->n) {
            return run;
        }
    }
    return NULL;
}

void count_remember(struct counter *c, const struct count_job *job, const struct run *run,
    const struct partition_view *view, const struct shard *shard)
{
    bool sketch = metric_is_sketch(job->metric);
    bool provable = view->known && ver_equal(&c->run_ver, &view->ver);
    for (size_t i = 0; provable && i < run->n; i++) {
        provable = is_closed(c->zone, &view->state, shard->cover.buckets[run->first + i]);
    }
    if (provable && sketch) {
        uint8_t text[HLL_DENSE_SIZE];
        cache_put(c->core->cache, &run->id, &view->ver, text, hll_encode(&c->run, text));
    } else if (provable) {
        cache_put(c->core->cache, &run->id, &view->ver, &c->run_sum, sizeof(c->run_sum));
    }
    if (sketch) {
        hll_unite(&c->tally.total[job->metric], &c->run);
    } else {
        tally_sum(&c->tally, job->metric, 0, c->run_sum);
    }
}
