#include "storage/count/whole.h"

#include <string.h>

#include "storage/base/index.h"
#include "storage/count/figures.h"
#include "storage/count/parts.h"

static bool may_recall(const struct count_question *q, const struct portion *portion)
{
    return proved_may_recall(&q->read, portion->partition) &&
           (portion->metrics & METRICS_OF_PAGE) == 0;
}

/* By the same plan. */
static bool has_same_runs(const struct partition_view *a, const struct partition_view *b)
{
    return a->over_s == b->over_s && (a->fold.n > 0) == (b->fold.n > 0);
}

size_t whole_portions(const struct count_question *q, size_t first)
{
    const struct portion *one = &q->portions[first];
    size_t n = 0;
    while (first + n < q->n_portions) {
        const struct portion *portion = &q->portions[first + n];
        if (!may_recall(q, portion) || portion->metrics != one->metrics ||
            portion->cover.buckets != one->cover.buckets ||
            !has_same_runs(portion_view(q, portion), portion_view(q, one))) {
            break;
        }
        n++;
    }
    return n;
}

/* The name of what these portions have together of @metric in any of their runs. */
static struct cache_id whole_name(
    struct count_question *q, const struct whole_run *whole, enum metric metric)
{
    const struct portion *one = &q->portions[whole->first];
    unsigned number = RUN_OF_WHOLE + one->partition * PARTITIONS_MAX + (unsigned)whole->n;
    return portion_run_name(q, one, metric, number);
}

/* The same of the run, by that name. */
static struct cache_id whole_id(
    const struct count_question *q, const struct whole_run *whole, const struct cache_id *name)
{
    const struct cover *cover = &q->portions[whole->first].cover;
    return run_id(q->read.core->cache, name, cover, whole_run_of(q, whole));
}

/* The proofs of all portions as one id.  n 0: there is none. */
static struct ver whole_proof(struct count_question *q, const struct whole_run *whole)
{
    return portions_proof(
        q, whole->first, whole->n, METRICS_OF_VISIT, whole_run_of(q, whole)->proof);
}

/* The same, to recall by; n 0 where it will hardly hold.  Several runs
 * have one proof: from one portion on there are as many alike throughout an attempt. */
static struct ver proof_to_recall_by(struct count_question *q, const struct whole_run *whole)
{
    enum proof proof = q->portions[whole->first].runs.all[whole->run].proof;
    const struct whole_run *before = whole > q->wholes ? whole - 1 : NULL;
    bool steady = true;
    if (before != NULL && before->first == whole->first &&
        q->portions[whole->first].runs.all[before->run].proof == proof) {
        return before->by;
    }
    for (size_t i = whole->first; steady && i < whole->first + whole->n; i++) {
        steady = proof_is_steady(portion_view(q, &q->portions[i]), proof, q->read.begun_ms);
    }
    return steady ? whole_proof(q, whole) : (struct ver){.n = 0};
}

static bool find_sum(struct count_question *q, const struct whole_run *whole,
    const struct cache_id *name, uint64_t *ret)
{
    struct cache_id id = whole_id(q, whole, name);
    return cache_get(q->read.core->cache, &id, &whole->by, cache_copy_to, ret);
}

/* The window of bucket @i of the run. */
static struct window bucket_window(
    const struct count_question *q, const struct whole_run *whole, size_t i)
{
    const struct cover *cover = &q->portions[whole->first].cover;
    const struct bucket *bucket = &cover->buckets[whole_run_of(q, whole)->first + i];
    return (struct window){bucket->start_s, bucket->end_s};
}

/* The buckets' figures make up the run's sum, if all of them are known. */
static bool add_buckets(const struct count_question *q, const struct whole_run *whole,
    const struct cache_id *name, uint64_t *ret)
{
    struct figures figures;
    uint64_t sum = 0;
    bool all = whole->n_buckets > 0;
    figures_begin(&figures, q->read.core->cache, name, &whole->by);
    for (size_t i = 0; all && i < whole->n_buckets; i++) {
        uint64_t figure = 0;
        all = figures_find(&figures, bucket_window(q, whole, i), &figure);
        sum += figure;
    }
    *ret = all ? sum : *ret;
    return all;
}

/* The sum of one metric: that of the run, or those of all its buckets. */
static bool find_metric(struct count_question *q, struct whole_run *whole, enum metric metric)
{
    struct cache_id name = whole_name(q, whole, metric);
    uint64_t *sum = &whole->sums[metric];
    return find_sum(q, whole, &name, sum) || add_buckets(q, whole, &name, sum);
}

/* All metrics, or none. */
static bool find_sums(struct count_question *q, struct whole_run *whole)
{
    const struct portion *one = &q->portions[whole->first];
    bool found = whole->by.n > 0;
    for (enum metric m = 0; found && m < METRICS; m++) {
        found = !metrics_have(one->metrics, m) || find_metric(q, whole, m);
    }
    return found;
}

/* ---- recalling ---- */

/* Have parts and buckets added up. */
static bool expect_sums(struct count_question *q, struct whole_run *whole)
{
    size_t n_parts = whole->n * METRICS;
    size_t n_buckets = whole->n_buckets * METRICS;
    size_t end = q->n_whole_sums + n_parts + n_buckets;
    if (!array_reserve(&q->whole_sums, &q->whole_sums_capacity, end, sizeof(*q->whole_sums))) {
        return false;
    }
    whole->parts = q->n_whole_sums;
    whole->buckets = whole->parts + n_parts;
    for (size_t i = 0; i < n_parts; i++) {
        q->whole_sums[whole->parts + i] = PART_UNKNOWN;
    }
    if (n_buckets > 0) {
        memset(&q->whole_sums[whole->buckets], 0, n_buckets * sizeof(*q->whole_sums));
    }
    q->n_whole_sums = end;
    return true;
}

enum whole_found whole_recall(
    struct count_question *q, size_t first, size_t n, size_t run, size_t point)
{
    const struct portion *one = &q->portions[first];
    if (!ARRAY_RESERVE(q, wholes)) {
        return WHOLE_NOMEM;
    }
    struct whole_run *whole = &q->wholes[q->n_wholes++];
    *whole = (struct whole_run){.first = first, .n = n, .run = run};
    whole->n_buckets = run_own_buckets(whole_run_of(q, whole));
    whole->by = proof_to_recall_by(q, whole);
    if (!find_sums(q, whole)) {
        memset(whole->sums, 0, sizeof(whole->sums));
        if (!expect_sums(q, whole)) {
            return WHOLE_NOMEM;
        }
        parts_recall(q, whole, point);
        return WHOLE_UNKNOWN;
    }
    whole->recalled = true;
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(one->metrics, m)) {
            tally_sum(&q->tally, m, point, whole->sums[m]);
            atomic_fetch_add(&q->read.core->stats.cache_hits, 1);
        }
    }
    for (size_t i = first; i < first + n; i++) {
        struct portion *portion = &q->portions[i];
        portion->runs.all[run].recalled = true;
        proved_rely(&q->read, portion->partition, portion->runs.all[run].proof);
    }
    return WHOLE_RECALLED;
}

/* What @run of @portion is a part of.  NULL: it is none. */
static struct whole_run *find_whole(
    const struct count_question *q, const struct portion *portion, const struct remembered_run *run)
{
    size_t at = portion->rest ? SIZE_MAX : (size_t)(portion - q->portions);
    for (size_t i = 0; i < q->n_wholes; i++) {
        struct whole_run *whole = &q->wholes[i];
        if (at >= whole->first && at < whole->first + whole->n &&
            run == &portion->runs.all[whole->run]) {
            return whole;
        }
    }
    return NULL;
}

bool whole_has(
    const struct count_question *q, const struct portion *portion, const struct remembered_run *run)
{
    return find_whole(q, portion, run) != NULL;
}

void whole_add(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, enum metric metric, uint64_t sum)
{
    struct whole_run *whole = find_whole(q, portion, run);
    if (whole != NULL) {
        parts_take(q, whole, (size_t)(portion - q->portions) - whole->first, metric, sum);
    }
}

void whole_add_bucket(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, size_t i, enum metric metric, uint64_t sum)
{
    const struct whole_run *whole = find_whole(q, portion, run);
    if (whole != NULL && whole->n_buckets > 0) {
        q->whole_sums[whole->buckets + (i - run->first) * METRICS + metric] += sum;
    }
}

/* Every portion has added all that it is asked for. */
static bool is_complete(const struct count_question *q, const struct whole_run *whole)
{
    bool all = true;
    for (enum metric m = 0; m < METRICS; m++) {
        bool asked = metrics_have(q->portions[whole->first].metrics, m);
        all = all && (!asked || whole->added[m] == whole->n);
    }
    return all;
}

/* Remember the buckets of the run, if all portions' were read: then they make up the sum.  What was
 * recalled of a portion does not say how it is spread over them. */
static void remember_buckets(const struct count_question *q, const struct whole_run *whole,
    const struct cache_id *name, const struct ver *proof, enum metric metric)
{
    const uint64_t *sums = &q->whole_sums[whole->buckets + metric];
    uint64_t all = 0;
    for (size_t i = 0; i < whole->n_buckets; i++) {
        all += sums[i * METRICS];
    }
    if (whole->n_buckets == 0 || all != whole->sums[metric]) {
        return;
    }
    struct figures figures;
    figures_begin(&figures, q->read.core->cache, name, proof);
    for (size_t i = 0; i < whole->n_buckets; i++) {
        figures_keep(&figures, bucket_window(q, whole, i), sums[i * METRICS]);
    }
    figures_end(&figures);
}

/* Remember what one metric of the run came to. */
static void remember_metric(struct count_question *q, const struct whole_run *whole,
    const struct ver *proof, enum metric metric)
{
    struct cache_id name = whole_name(q, whole, metric);
    struct cache_id id = whole_id(q, whole, &name);
    remember_buckets(q, whole, &name, proof, metric);
    cache_put(q->read.core->cache, &id, proof, &whole->sums[metric], sizeof(whole->sums[metric]));
}

void whole_remember(struct count_question *q)
{
    for (size_t i = 0; i < q->n_wholes; i++) {
        const struct whole_run *whole = &q->wholes[i];
        if (whole->recalled) {
            continue;
        }
        parts_keep(q, whole);
        if (!is_complete(q, whole)) {
            continue;
        }
        struct ver proof = whole_proof(q, whole);
        for (enum metric m = 0; m < METRICS; m++) {
            if (metrics_have(q->portions[whole->first].metrics, m)) {
                remember_metric(q, whole, &proof, m);
            }
        }
    }
}
