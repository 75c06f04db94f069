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
            if (!all) { /* it will be read with the others */
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

/* Append the runs among buckets [first, end) of the portion to its runs; @open: those of minutes of
 * open hours, too.  False: no memory. */
static bool find_runs(
    struct count_question *q, struct portion *portion, size_t first, size_t end, bool open)
{
    struct found_runs *found = &q->found;
    const struct partition_view *view = portion_view(q, portion);
    bool has_open = open && view->fold.n > 0;
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

bool count_recall_runs(
    struct count_question *q, struct portion *portion, size_t first, size_t end, size_t point)
{
    struct remembered_runs *runs = &portion->runs;
    size_t before = runs->n;
    if (!find_runs(q, portion, first, end, false)) {
        return false;
    }
    for (size_t i = before; i < runs->n; i++) {
        recall_run(q, portion, &runs->all[i], point);
    }
    return true;
}

/* The same for portions of which all together is remembered, too. */
static bool recall_together(
    struct count_question *q, size_t first, size_t n, size_t from, size_t end, size_t point)
{
    const struct portion *one = &q->portions[first];
    size_t before = one->runs.n;
    for (size_t i = first; i < first + n; i++) {
        if (!find_runs(q, &q->portions[i], from, end, true)) {
            return false;
        }
    }
    for (size_t run = before; run < one->runs.n; run++) {
        if (whole_recall(q, first, n, run, point) == WHOLE_NOMEM) {
            return false;
        }
    }
    return true;
}

bool count_recall_point(struct count_question *q, size_t point)
{
    for (size_t i = 0; i < q->n_portions;) {
        struct portion *portion = &q->portions[i];
        size_t n = whole_portions(q, i);
        size_t from = point == 0 ? 0 : portion->ends[point - 1];
        bool may = proved_may_recall(&q->read, portion->partition);
        bool ok = n > 0 ? recall_together(q, i, n, from, portion->ends[point], point)
                        : !may || count_recall_runs(q, portion, from, portion->ends[point], point);
        if (!ok) {
            return false;
        }
        i += n > 0 ? n : 1;
    }
    return true;
}

/* The portion's run came to @n bytes, which are remembered if they can be proved: by themselves, or
 * with those of other portions.  False: they cannot. */
static bool keep_value(struct count_question *q, enum metric metric, const struct portion *portion,
    const struct remembered_run *run, const void *value, size_t n)
{
    if (whole_has(q, portion, run)) {
        return run->proof == PROOF_FOLD ||
               proved_may_keep(&q->read, portion->partition, &portion->cover, run);
    }
    struct cache_id id = portion_run_id(q, portion, metric, run);
    return proved_keep(&q->read, portion->partition, &portion->cover, run, &id, value, n);
}

bool count_keep_run(struct count_question *q, enum metric metric, const struct portion *portion,
    const struct remembered_run *run, size_t point)
{
    uint8_t text[HLL_DENSE_SIZE];
    if (metric_is_sketch(metric)) {
        size_t n = hll_encode(&q->run[metric], text);
        (void)keep_value(q, metric, portion, run, text, n);
        return tally_unite(&q->tally, metric, point, &q->run[metric]);
    }
    uint64_t sum = q->run_sum[metric];
    if (keep_value(q, metric, portion, run, &sum, sizeof(sum))) {
        whole_add(q, portion, run, metric, sum);
    }
    tally_sum(&q->tally, metric, point, sum);
    return true;
}
