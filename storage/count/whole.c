#include "storage/count/whole.h"

#include <string.h>

#include "storage/base/index.h"
#include "storage/count/figures.h"

/* The run of @portion that has the same buckets as @run of @one, and is closed, too.  NULL: there
 * is none. */
static struct remembered_run *run_alike(
    const struct portion *portion, const struct portion *one, const struct remembered_run *run)
{
    struct remembered_run *own = run_at(portion->runs.all, portion->runs.n, run->first);
    bool alike = own != NULL && portion->cover.buckets == one->cover.buckets &&
                 own->first == run->first && own->n == run->n && own->proof == PROOF_VER;
    return alike ? own : NULL;
}

/* Have all portions of visits the run of @one? */
static bool is_of_all(
    const struct count_question *q, const struct portion *one, const struct remembered_run *run)
{
    bool all = run->proof == PROOF_VER && run->n <= WHOLE_BUCKETS_MAX;
    for (size_t i = 0; all && i < q->n_portions; i++) {
        const struct portion *portion = &q->portions[i];
        all = !portion_is_spread(portion) || run_alike(portion, one, run) != NULL;
    }
    return all;
}

/* Begin with what is remembered of @metric in all portions of visits together. */
static void begin_figures(struct count_question *q, struct figures *figures,
    const struct portion *one, enum metric metric, const struct ver *proof)
{
    struct cache_id name = portion_run_name(q, one, metric, RUN_OF_WHOLE);
    figures_begin(figures, q->read.core->cache, &name, proof);
}

static struct window bucket_window(const struct portion *one, size_t i)
{
    return (struct window){one->cover.buckets[i].start_s, one->cover.buckets[i].end_s};
}

/* ---- recalling ---- */

/* Find the sums over the run's buckets, metric by metric.  False: some bucket is not known. */
static bool find_sums(struct count_question *q, const struct portion *one,
    const struct remembered_run *run, const struct ver *proof, uint64_t ret[METRICS])
{
    struct figures figures;
    bool all = proof->n > 0;
    for (enum metric m = 0; all && m < METRICS; m++) {
        ret[m] = 0;
        if (!metrics_have(one->metrics, m)) {
            continue;
        }
        begin_figures(q, &figures, one, m, proof);
        for (size_t i = 0; all && i < run->n; i++) {
            uint64_t figure = 0;
            all = figures_find(&figures, bucket_window(one, run->first + i), &figure);
            ret[m] += figure;
        }
    }
    return all;
}

static void take_sums(struct count_question *q, const struct portion *one,
    const struct remembered_run *run, const uint64_t sums[METRICS], size_t point)
{
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(one->metrics, m)) {
            tally_sum(&q->tally, m, point, sums[m]);
            atomic_fetch_add(&q->read.core->stats.cache_hits, 1);
        }
    }
    for (size_t i = 0; i < q->n_portions; i++) {
        struct remembered_run *own = run_alike(&q->portions[i], one, run);
        if (portion_is_spread(&q->portions[i]) && own != NULL) { /* all have it: is_of_all() */
            own->recalled = true;
            proved_rely(&q->read, q->portions[i].partition, PROOF_VER);
        }
    }
}

/* Have the run's buckets added up by whole_add().  False: no memory. */
static bool expect_sums(struct count_question *q, const struct remembered_run *run)
{
    if (!ARRAY_RESERVE(q, wholes)) {
        return false;
    }
    struct whole_run *whole = &q->wholes[q->n_wholes++];
    whole->first = run->first;
    whole->n = run->n;
    whole->kept = 0;
    memset(whole->sums, 0, sizeof(whole->sums));
    return true;
}

bool whole_recall(struct count_question *q, size_t point)
{
    const struct portion *one = count_visits(q);
    if (one == NULL || one->runs.n == 0) {
        return true;
    }
    struct ver proof = portions_proof(q, METRICS_OF_VISIT);
    uint64_t sums[METRICS];
    for (size_t i = 0; i < one->runs.n; i++) {
        const struct remembered_run *run = &one->runs.all[i];
        if (run->first < portion_first(one, point) || run->first >= one->ends[point] ||
            !is_of_all(q, one, run)) {
            continue;
        }
        if (find_sums(q, one, run, &proof, sums)) {
            take_sums(q, one, run, sums, point);
        } else if (!expect_sums(q, run)) {
            return false;
        }
    }
    return true;
}

/* ---- remembering ---- */

/* Where the buckets of @run are added up.  NULL: nowhere. */
static struct whole_run *find_whole(struct count_question *q, const struct remembered_run *run)
{
    for (size_t i = 0; i < q->n_wholes; i++) {
        if (q->wholes[i].first == run->first && q->wholes[i].n == run->n) {
            return &q->wholes[i];
        }
    }
    return NULL;
}

void whole_add(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, size_t i, enum metric metric, uint64_t sum)
{
    struct whole_run *whole = portion_is_spread(portion) ? find_whole(q, run) : NULL;
    if (whole != NULL) {
        whole->sums[metric][i - run->first] += sum;
    }
}

void whole_keep(struct count_question *q, const struct remembered_run *run)
{
    struct whole_run *whole = find_whole(q, run);
    if (whole != NULL) {
        whole->kept++;
    }
}

void whole_remember(struct count_question *q)
{
    const struct portion *one = count_visits(q);
    size_t n = visitor_partitions(q->read.core->partitions.n);
    if (q->n_wholes == 0) {
        return;
    }
    struct ver proof = portions_proof(q, METRICS_OF_VISIT);
    struct figures figures;
    for (enum metric m = 0; m < METRICS; m++) {
        if (!metrics_have(one->metrics, m)) {
            continue;
        }
        begin_figures(q, &figures, one, m, &proof);
        for (size_t w = 0; w < q->n_wholes; w++) {
            const struct whole_run *whole = &q->wholes[w];
            for (size_t i = 0; whole->kept == n && i < whole->n; i++) {
                figures_keep(&figures, bucket_window(one, whole->first + i), whole->sums[m][i]);
            }
        }
        figures_end(&figures);
    }
}
