#include "storage/count/recall.h"

#include <string.h>

#include "storage/count/whole.h"

static void name_portion(struct count_question *q, struct portion *portion)
{
    for (enum metric m = 0; m < METRICS && !portion->named; m++) {
        if (metrics_have(portion->metrics, m)) {
            portion->names[m] = portion_run_name(q, portion, m, portion->partition);
        }
    }
    portion->named = true;
}

static struct cache_id portion_run_id(const struct count_question *q, const struct portion *portion,
    enum metric metric, const struct remembered_run *run)
{
    return run_id(q->read.core->cache, &portion->names[metric], &portion->cover, run);
}

/* Where a remembered value of one metric goes: a sketch into the tally, a sum into @sum. */
struct use {
    struct tally *tally;
    enum metric metric;
    size_t point;
    bool nomem;
    uint64_t sum;
};

static void use_sketch(void *data, const void *value, size_t n)
{
    struct use *use = data; /* this process has encoded the string, so it is not refused */
    (void)tally_sketch(use->tally, use->metric, use->point, value, n, &use->nomem);
}

static void use_sum(void *data, const void *value, size_t n)
{
    struct use *use = data;
    memcpy(&use->sum, value, n);
}

/* Recall all metrics of a run, or none.  Sketches come first: if a later metric is missing, the run
 * is read, and to unite a sketch with the same sketch again changes nothing.  Sums are taken when
 * everything is there.  (The sketch still needs its proof, as if the whole run were recalled.) */
static void recall_run(
    struct count_question *q, struct portion *portion, struct remembered_run *run, size_t point)
{
    struct use uses[METRICS] = {0};
    bool all = true;
    name_portion(q, portion);
    for (int sketch = 1; sketch >= 0; sketch--) {
        for (enum metric metric = 0; metric < METRICS; metric++) {
            if (!metrics_have(portion->metrics, metric) ||
                metric_is_sketch(metric) != (sketch == 1)) {
                continue;
            }
            if (!all) { /* the metric will be read together with the others */
                atomic_fetch_add(&q->read.core->stats.cache_misses, 1);
                continue;
            }
            struct cache_id id = portion_run_id(q, portion, metric, run);
            uses[metric] = (struct use){&q->tally, metric, point, false, 0};
            all = proved_recall(&q->read, portion->partition, run, &id,
                      sketch == 1 ? use_sketch : use_sum, &uses[metric]) &&
                  !uses[metric].nomem;
        }
    }
    for (enum metric m = 0; all && m < METRICS; m++) {
        if (metrics_have(portion->metrics, m) && !metric_is_sketch(m)) {
            tally_sum(&q->tally, m, point, uses[m].sum);
        }
    }
    run->recalled = all;
}

/* Append the runs among buckets [first, end) of the portion to its runs.  For visits the minutes of
 * open hours are in runs, too.  False: no memory. */
static bool find_runs(struct count_question *q, struct portion *portion, size_t first, size_t end)
{
    struct found_runs *found = &q->found;
    const struct partition_view *view = portion_view(q, portion);
    bool has_open = portion_is_spread(portion) && view->fold.n > 0;
    if (found->plan != portion->cover.buckets || found->first != first || found->end != end ||
        found->over_s != view->over_s || found->has_open != has_open) {
        found->plan = NULL;
        found->runs.n = 0;
        if (!runs_find(&found->runs, q->read.zone, view, &portion->cover, first, end, has_open)) {
            return false;
        }
        found->plan = portion->cover.buckets;
        found->first = first;
        found->end = end;
        found->over_s = view->over_s;
        found->has_open = has_open;
    }
    for (size_t i = 0; i < found->runs.n; i++) {
        if (runs_add(&portion->runs, found->runs.all[i]) == NULL) {
            return false;
        }
    }
    return true;
}

/* Recall what the portion of visits has of the run, in all metrics. */
static void recall_part(
    struct count_question *q, struct portion *portion, struct remembered_run *run, size_t point)
{
    unsigned partition = portion->partition;
    const struct kept_run *kept = kept_parts_recall(&q->parts, partition, &portion->cover, run);
    run->recalled = kept != NULL;
    const char *from = run->recalled ? kept_run_part(kept, partition).p : NULL;
    for (enum metric m = 0; run->recalled && m < METRICS; m++) {
        if (metrics_have(portion->metrics, m)) {
            uint64_t sum;
            memcpy(&sum, from, sizeof(sum));
            from += sizeof(sum);
            tally_sum(&q->tally, m, point, sum);
        }
    }
}

/* Take what is remembered of the portion's runs among buckets [first, end), unless a run is
 * recalled already. */
static void recall_runs(
    struct count_question *q, struct portion *portion, size_t first, size_t end, size_t point)
{
    for (size_t i = 0; i < portion->runs.n; i++) {
        struct remembered_run *run = &portion->runs.all[i];
        if (run->recalled || run->first < first || run->first >= end) {
            continue;
        }
        if (portion_is_spread(portion)) {
            recall_part(q, portion, run, point);
        } else {
            recall_run(q, portion, run, point);
        }
    }
}

bool count_recall_rest(struct count_question *q, struct portion *rest)
{
    bool ok = find_runs(q, rest, 0, rest->cover.n);
    recall_runs(q, rest, 0, rest->cover.n, TALLY_TOTAL);
    return ok;
}

bool count_recall_point(struct count_question *q, size_t point)
{
    bool ok = true;
    for (size_t i = 0; ok && i < q->n_portions; i++) {
        struct portion *portion = &q->portions[i];
        ok = !proved_may_recall(&q->read, portion->partition) ||
             find_runs(q, portion, portion_first(portion, point), portion->ends[point]);
    }
    ok = ok && whole_recall(q, point);
    for (size_t i = 0; ok && i < q->n_portions; i++) {
        struct portion *portion = &q->portions[i];
        recall_runs(q, portion, portion_first(portion, point), portion->ends[point], point);
    }
    return ok;
}

/* All that the portion of visits has of the run was read: remember it. */
static void keep_part(
    struct count_question *q, const struct portion *portion, const struct remembered_run *run)
{
    uint64_t sums[METRICS];
    size_t n = 0;
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(portion->metrics, m)) {
            sums[n++] = q->run_sum[m];
        }
    }
    struct slice part = {(const char *)sums, n * sizeof(*sums)};
    if (kept_parts_put(&q->parts, portion->partition, &portion->cover, run, part)) {
        whole_keep(q, run);
    }
}

static void keep_value(struct count_question *q, enum metric metric, const struct portion *portion,
    const struct remembered_run *run, const void *value, size_t n)
{
    struct cache_id id = portion_run_id(q, portion, metric, run);
    proved_keep(&q->read, portion->partition, &portion->cover, run, &id, value, n);
}

bool count_keep_run(struct count_question *q, enum metric metric, const struct portion *portion,
    const struct remembered_run *run, size_t point)
{
    uint8_t text[HLL_DENSE_SIZE];
    uint64_t sum = q->run_sum[metric];
    if (metric_is_sketch(metric)) {
        keep_value(q, metric, portion, run, text, hll_encode(&q->run[metric], text));
        return tally_unite(&q->tally, metric, point, &q->run[metric]);
    }
    if (!portion_is_spread(portion)) {
        keep_value(q, metric, portion, run, &sum, sizeof(sum));
    } else if (portion->metrics >> metric == 1) { /* the last metric: all sums are there */
        keep_part(q, portion, run);
    }
    tally_sum(&q->tally, metric, point, sum);
    return true;
}
