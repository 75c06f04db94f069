#include "storage/count/tally.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/time/step.h"

bool metric_is_sketch(enum metric metric)
{
    return metric == METRIC_UV || metric == METRIC_IPS || metric == METRIC_OTHER_UV ||
           metric == METRIC_OTHER_IPS;
}

void tally_release(struct tally *tally)
{
    free(tally->points);
    tally->points = NULL;
    tally->n_points = tally->capacity = 0;
    tally_rest(tally);
}

void tally_rest(struct tally *tally)
{
    for (enum metric metric = 0; metric < METRICS; metric++) {
        for (size_t i = 0; i <= TALLY_GROUP; i++) {
            free(tally->group[metric][i]);
            tally->group[metric][i] = NULL;
        }
    }
    memset(tally->touched, 0, sizeof(tally->touched));
}

bool tally_cut(struct tally *tally, const struct zone *zone, enum step step, struct window window)
{
    tally->n_points = 0;
    for (int64_t at_s = window.from_s; at_s < window.to_s;) {
        int64_t end_s = step == STEP_NONE ? window.to_s : step_end(zone, step, at_s);

        if (!array_reserve(
                &tally->points, &tally->capacity, tally->n_points, sizeof(*tally->points))) {
            return false;
        }
        end_s = end_s < window.to_s ? end_s : window.to_s;
        tally->points[tally->n_points++] = (struct count_point){.window = {at_s, end_s}};
        at_s = end_s;
    }
    return true;
}

void tally_clear(struct tally *tally)
{
    memset(tally->sums, 0, sizeof(tally->sums));
    for (enum metric metric = 0; metric < METRICS; metric++) {
        if (metric_is_sketch(metric)) {
            hll_clear(&tally->total[metric]);
        }
    }
    for (size_t i = 0; i < tally->n_points; i++) {
        memset(tally->points[i].values, 0, sizeof(tally->points[i].values));
    }
    memset(tally->touched, 0, sizeof(tally->touched));
}

/* The sketch in which a point is gathered.  NULL: no memory. */
static struct hll *sketch_of(struct tally *tally, enum metric metric, size_t point)
{
    if (tally->n_points == 1 || point == TALLY_TOTAL || metric >= METRIC_OTHER_PV) {
        return &tally->total[metric];
    }
    size_t place = point == tally->n_points - 1 ? TALLY_GROUP : point % TALLY_GROUP;
    struct hll **own = &tally->group[metric][place];
    if (*own == NULL) {
        *own = malloc(sizeof(**own));
    }
    if (*own != NULL && !tally->touched[metric][place]) {
        hll_clear(*own);
        tally->touched[metric][place] = true;
    }
    return *own;
}

bool tally_sketch(struct tally *tally, enum metric metric, size_t point, const char *string,
    size_t n, bool *ret_nomem)
{
    struct hll *own = sketch_of(tally, metric, point);
    *ret_nomem = own == NULL;
    return own != NULL && hll_merge(own, string, n);
}

bool tally_unite(struct tally *tally, enum metric metric, size_t point, const struct hll *sketch)
{
    struct hll *own = sketch_of(tally, metric, point);
    if (own != NULL) {
        hll_unite(own, sketch);
    }
    return own != NULL;
}

void tally_sum(struct tally *tally, enum metric metric, size_t point, uint64_t value)
{
    tally->sums[metric] += value;
    tally->points[point].values[metric] += value;
}

void tally_known(struct tally *tally, enum metric metric, size_t point, uint64_t value)
{
    if (metric_is_sketch(metric)) {
        tally->points[point].values[metric] = value;
    } else {
        tally_sum(tally, metric, point, value);
    }
}

static void end_point(struct tally *tally, enum metric metric, size_t place, size_t point)
{
    if (tally->touched[metric][place]) {
        const struct hll *own = tally->group[metric][place];
        tally->points[point].values[metric] = hll_estimate(own);
        hll_unite(&tally->total[metric], own);
        tally->touched[metric][place] = false;
    }
}

void tally_end_group(struct tally *tally, size_t point)
{
    size_t first = point - point % TALLY_GROUP;
    size_t last = tally->n_points - 1;

    for (enum metric metric = 0; tally->n_points > 1 && metric < METRICS; metric++) {
        for (size_t i = 0; i < TALLY_GROUP; i++) {
            end_point(tally, metric, i, first + i);
        }
        if (last - first < TALLY_GROUP) {
            end_point(tally, metric, TALLY_GROUP, last);
        }
    }
}

uint64_t tally_total(const struct tally *tally, enum metric metric)
{
    return metric_is_sketch(metric) ? hll_estimate(&tally->total[metric]) : tally->sums[metric];
}

uint64_t tally_at_most(struct tally *tally, enum metric metric)
{
    enum metric other = metric_other(metric);
    uint64_t own = tally_total(tally, metric);
    uint64_t hidden = tally_total(tally, other);
    if (hidden == 0 || !metric_is_sketch(metric)) {
        return hidden == 0 ? 0 : own + hidden;
    }
    hll_unite(&tally->total[other], &tally->total[metric]);
    uint64_t both = hll_estimate(&tally->total[other]);
    return both > own ? both : own;
}

struct count_point *tally_take_points(struct tally *tally, size_t *ret_n)
{
    struct count_point *points = tally->points;

    *ret_n = tally->n_points;
    tally->points = NULL;
    tally->n_points = tally->capacity = 0;
    return points;
}
