#include "storage/count/recall.h"

#include <string.h>

/* A name for what is asked of a portion.  What lies beside the pages is one for all of them. */
static struct cache_id portion_name(
    struct count_question *q, const struct portion *portion, enum metric metric)
{
    struct slice name = metric_name(metric, *portion->pages[0]);
    const struct slice *only = &name;
    bool beside = metrics_have(METRICS_BESIDE, (int)metric);
    return run_name(q->read.core->cache, &q->read.out, portion->partition, metric_kind(metric),
        q->job->asked.site, beside ? &only : portion->pages, portion_names(portion, metric));
}

static struct cache_id portion_run_id(const struct count_question *q, const struct portion *portion,
    enum metric metric, const struct remembered_run *run)
{
    return run_id(q->read.core->cache, &portion->names[metric], &portion->cover, run);
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
static bool recall_run(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, size_t point)
{
    struct use uses[METRICS] = {0};
    bool all = true;
    for (int sketch = 1; sketch >= 0; sketch--) {
        for (int m = 0; m < METRICS; m++) {
            enum metric metric = (enum metric)m;
            if (!metrics_have(portion->metrics, m) || metric_is_sketch(metric) != (sketch == 1)) {
                continue;
            }
            if (!all) { /* it will be read with the others */
                atomic_fetch_add(&q->read.core->stats.cache_misses, 1);
                continue;
            }
            struct cache_id id = portion_run_id(q, portion, metric, run);
            uses[m] = (struct use){&q->tally, metric, point, false, 0};
            all = proved_recall(&q->read, portion->partition, run, &id,
                      sketch == 1 ? use_sketch : use_sum, &uses[m]) &&
                  !uses[m].nomem;
        }
    }
    for (int m = 0; all && m < METRICS; m++) {
        if (metrics_have(portion->metrics, m) && !metric_is_sketch((enum metric)m)) {
            tally_sum(&q->tally, (enum metric)m, point, uses[m].sum);
        }
    }
    return all;
}

bool count_recall_runs(
    struct count_question *q, struct portion *portion, size_t first, size_t end, size_t point)
{
    struct remembered_runs *runs = &portion->runs;
    size_t before = runs->n;
    const struct partition_view *view = portion_view(q, portion);
    if (!runs_find(runs, q->read.zone, view, &portion->cover, first, end)) {
        return false;
    }
    for (int m = 0; m < METRICS && runs->n > before; m++) {
        if (metrics_have(portion->metrics, m)) {
            portion->names[m] = portion_name(q, portion, (enum metric)m);
        }
    }
    for (size_t i = before; i < runs->n; i++) {
        runs->all[i].recalled = recall_run(q, portion, &runs->all[i], point);
    }
    return true;
}

bool count_keep_run(struct count_question *q, enum metric metric, const struct portion *portion,
    const struct remembered_run *run, size_t point)
{
    struct cache_id id = portion_run_id(q, portion, metric, run);
    uint8_t text[HLL_DENSE_SIZE];
    bool sketch = metric_is_sketch(metric);
    const void *value = sketch ? (const void *)text : &q->run_sum[metric];
    size_t n = sketch ? hll_encode(&q->run[metric], text) : sizeof(q->run_sum[metric]);
    (void)proved_keep(&q->read, portion->partition, &portion->cover, run, &id, value, n);
    if (sketch) {
        return tally_unite(&q->tally, metric, point, &q->run[metric]);
    }
    tally_sum(&q->tally, metric, point, q->run_sum[metric]);
    return true;
}
