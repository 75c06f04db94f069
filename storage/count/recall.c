#include "storage/count/recall.h"

#include "storage/base/index.h"
#include "storage/count/series.h"
#include "storage/read/run.h"

static bool add_run(struct shard *shard, size_t first, size_t n, size_t point, enum proof proof)
{
    if (!array_reserve(&shard->runs, &shard->runs_capacity, shard->n_runs, sizeof(*shard->runs))) {
        return false;
    }
    shard->runs[shard->n_runs++] =
        (struct run){.first = first, .n = n, .point = point, .proof = proof};
    return true;
}

/* Those of buckets [first, end).  (There may be gaps between the buckets of a rest.) */
static bool find_runs(
    const struct zone *zone, struct shard *shard, size_t first, size_t end, size_t point)
{
    for (size_t i = first; i < end;) {
        size_t next = closed_run_end(zone, &shard->view, &shard->cover, i, end);
        enum proof proof = closed_proof(zone, &shard->view, shard->cover.buckets[i]);
        if (next > i && !add_run(shard, i, next - i, point, proof)) {
            return false;
        }
        i = next > i ? next : i + 1;
    }
    return true;
}

struct cache_id count_id(struct counter *c, const struct count_job *job, unsigned partition,
    enum metric metric, const struct slice *const *pages, size_t n_pages)
{
    return closed_name(
        c->core->cache, &c->out, partition, metric_kind(metric), job->asked.site, pages, n_pages);
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
 * taken when all is there.  (Nothing, if it is proved: a sketch counts as recalled without the
 * rest.) */
static bool recall_run(struct counter *c, struct shard *shard, const struct run *run)
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
            bool found = all && closed_recall(c->core->cache, &run->id[m], &shard->view, run->proof,
                                    sketch == 1 ? use_sketch : use_sum, &uses[m]);
            all = found && !uses[m].nomem;
            shard->recalled |= found ? 1u << run->proof : 0;
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
                run->id[m] =
                    closed_run_id(c->core->cache, &names[m], &shard->cover, run->first, run->n);
            }
        }
        run->recalled = recall_run(c, shard, run);
    }
    return true;
}

static void forget(struct counter *c)
{
    counter_drop_rest(c);
    for (size_t i = 0; i < c->n_shards; i++) {
        c->shards[i].n_runs = 0;
        c->shards[i].recalled = 0;
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

struct run *count_run_at(const struct shard *shard, size_t i)
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
    const struct ver *ver = closed_ver(view, run->proof);
    bool provable = ver_equal(&c->run_ver[metric], ver) &&
                    closed_run_holds(c->zone, view, run->proof, &shard->cover, run->first, run->n);
    if (provable && sketch) {
        uint8_t text[HLL_DENSE_SIZE];
        cache_put(c->core->cache, &run->id[metric], ver, text, hll_encode(&c->run[metric], text));
    } else if (provable) {
        cache_put(
            c->core->cache, &run->id[metric], ver, &c->run_sum[metric], sizeof(c->run_sum[metric]));
    }
    if (sketch) {
        return tally_unite(&c->tally, metric, run->point, &c->run[metric]);
    }
    tally_sum(&c->tally, metric, run->point, c->run_sum[metric]);
    return true;
}
