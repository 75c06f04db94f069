#include "storage/count/series.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/count/figures.h"
#include "storage/count/recall.h"
#include "storage/read/plan.h"

/* ---- names ---- */

/* What is remembered of a series: figures of each metric. */
struct kept_series {
    unsigned metrics; /* the set of metrics that are asked for and kept */
    struct figures of[METRICS];
};

/* The name of @metric, which does not depend on how the pages are spread over portions.  @all
 * points to the metric's own name, and behind it to the @n pages. */
static struct cache_id name_metric(
    struct count_question *q, enum metric metric, const struct slice **all, size_t n)
{
    bool beside = metrics_have(METRICS_BESIDE, metric);
    return run_name(q->read.core->cache, &q->scratch, RUN_OF_SERIES, metric_kind(metric),
        q->job->asked.site, beside ? all : all + 1, beside ? 1 + n : n);
}

/* Begin with the figures of each metric that is asked for.  If memory is out, kept->metrics is
 * empty, and nothing is remembered. */
static void begin_series(struct count_question *q, struct kept_series *kept)
{
    size_t n = q->job->n_pages == 0 ? 1 : q->job->n_pages;
    const struct slice *pages = q->job->n_pages == 0 ? &count_whole_site : q->job->pages;
    const struct slice **all = malloc((1 + n) * sizeof(struct slice *));
    struct slice own;
    kept->metrics = 0;
    if (all == NULL) {
        return;
    }
    all[0] = &own;
    for (size_t i = 0; i < n; i++) {
        all[1 + i] = &pages[i];
    }
    for (size_t i = 0; i < q->n_portions; i++) {
        kept->metrics |= q->portions[i].metrics & ~METRICS_OTHER_SKETCHES; /* no point has them */
    }
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(kept->metrics, m)) {
            own = metric_name(m, pages[0]);
            struct cache_id name = name_metric(q, m, all, n);
            struct ver proof = portions_proof(q, 1u << m);
            figures_begin(&kept->of[m], q->read.core->cache, &name, &proof);
        }
    }
    free(all);
}

/* ---- recalling ---- */

static bool recall_point(struct count_question *q, struct kept_series *kept, size_t point)
{
    uint64_t values[METRICS] = {0};
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(kept->metrics, m) &&
            !figures_find(&kept->of[m], q->tally.points[point].window, &values[m])) {
            return false;
        }
    }
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(kept->metrics, m)) {
            tally_known(&q->tally, m, point, values[m]);
            atomic_fetch_add(&q->read.core->stats.cache_hits, 1);
        }
    }
    return true;
}

/* The end of the stretch of points that begins at @point: all are known, or none is. */
static size_t stretch_end(const struct count_question *q, size_t point)
{
    size_t end = point + 1;
    while (end < q->tally.n_points && q->known[end] == q->known[point]) {
        end++;
    }
    return end;
}

/* Note that points [from, to) of the portion need not be read.  False: no memory. */
static bool skip_points(struct count_question *q, struct portion *portion, size_t from, size_t to)
{
    size_t first = portion_first(portion, from);
    struct remembered_run run = {
        .first = first, .n = portion->ends[to - 1] - first, .proof = PROOF_VER, .recalled = true};
    proved_rely(&q->read, portion->partition, PROOF_VER);
    return runs_add(&portion->runs, run) != NULL;
}

/* Note in all portions that the known points need not be read.  False: no memory. */
static bool skip_known(struct count_question *q)
{
    for (size_t point = 0; point < q->tally.n_points;) {
        size_t end = stretch_end(q, point);
        for (size_t i = 0; q->known[point] && i < q->n_portions; i++) {
            if (!skip_points(q, &q->portions[i], point, end)) {
                return false;
            }
        }
        point = end;
    }
    return true;
}

/* Find the runs of all portions, in the order of the points: those of the first and the last point,
 * if these are not known, and between them the known points.  False: no memory. */
static bool find_all_runs(struct count_question *q)
{
    size_t last = q->tally.n_points - 1;
    return (q->known[0] || count_recall_point(q, 0)) && skip_known(q) &&
           (q->known[last] || count_recall_point(q, last));
}

/* Plan the rest that adds the known points to the total of a portion's sketches. */
static bool plan_rest(struct count_question *q, const struct portion *portion)
{
    struct portion rest = {.partition = portion->partition,
        .metrics = portion->metrics & METRICS_SKETCHES,
        .pages = portion->pages,
        .n_pages = portion->n_pages,
        .rest = true};
    struct cover_basis basis = proved_basis(&q->read, portion_view(q, &rest));
    bool ok = rest.metrics == 0 || ARRAY_RESERVE(q, rest);
    cover_init(&rest.cover);
    for (size_t point = 0; ok && rest.metrics != 0 && point < q->tally.n_points;) {
        size_t end = stretch_end(q, point);
        struct window window = {
            q->tally.points[point].window.from_s, q->tally.points[end - 1].window.to_s};
        ok = !q->known[point] || cover_append(&basis, window, BUCKETS_MAX, &rest.cover) == COVER_OK;
        point = end;
    }
    ok = ok && count_recall_rest(q, &rest);
    if (!ok || rest.cover.n == 0) {
        runs_release(&rest.runs);
        cover_release(&rest.cover);
        return ok;
    }
    q->rest[q->n_rest++] = rest;
    return true;
}

bool series_recall(struct count_question *q)
{
    struct kept_series kept;
    bool any = false;
    begin_series(q, &kept);
    for (size_t i = 0; kept.metrics != 0 && i < q->tally.n_points; i++) {
        q->known[i] = recall_point(q, &kept, i);
        any = any || q->known[i];
    }
    bool ok = find_all_runs(q);
    for (size_t i = 0; ok && any && i < q->n_portions; i++) {
        ok = plan_rest(q, &q->portions[i]);
    }
    return ok;
}

/* ---- remembering ---- */

/* Are all buckets of a point closed for readers, by the replies? */
static bool point_is_over(const struct count_question *q, size_t point)
{
    for (size_t s = 0; s < q->n_portions; s++) {
        const struct portion *portion = &q->portions[s];
        const struct partition_view *view = portion_view(q, portion);
        bool alike =
            s > 0 && portion->ends[point] == portion[-1].ends[point] &&
            memcmp(&view->state, &portion_view(q, &portion[-1])->state, sizeof(view->state)) == 0;
        size_t i = portion_first(portion, point);
        for (; !alike && i < portion->ends[point]; i++) {
            if (proof_of(q->read.zone, view, portion->cover.buckets[i]) != PROOF_VER) {
                return false;
            }
        }
    }
    return true;
}

void series_remember(struct count_question *q)
{
    struct kept_series kept;
    if (q->read.core->cache == NULL || q->read.full || q->tally.n_points < 2) {
        return;
    }
    begin_series(q, &kept);
    for (enum metric m = 0; m < METRICS; m++) { /* a metric without a proof is not kept */
        bool keeps = metrics_have(kept.metrics, m) && kept.of[m].cache != NULL;
        kept.metrics &= keeps ? ~0u : ~(1u << m);
    }
    for (size_t i = 0; kept.metrics != 0 && i < q->tally.n_points; i++) {
        const struct count_point *point = &q->tally.points[i];
        bool is_new = !q->known[i] && point_is_over(q, i);
        for (enum metric m = 0; is_new && m < METRICS; m++) {
            if (metrics_have(kept.metrics, m)) {
                figures_keep(&kept.of[m], point->window, point->values[m]);
                atomic_fetch_add(&q->read.core->stats.cache_misses, 1);
            }
        }
    }
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(kept.metrics, m)) {
            figures_end(&kept.of[m]);
        }
    }
}
