#include "storage/tally.h"

#include <stdlib.h>
#include <string.h>

#include "storage/index.h"
#include "storage/step.h"

bool metric_is_sketch(enum metric metric)
{
    return metric == METRIC_UV || metric == METRIC_IPS;
}

void tally_release(struct tally *tally)
{
    free(tally->points);
    tally->points = NULL;
    tally->n_points = tally->capacity = 0;
    for (int metric = 0; metric < METRICS; metric++) {
        free(tally->group[metric]);
        tally->group[metric] = NULL;
    }
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

static void clear_group(struct tally *tally)
{
    memset(tally->touched, 0, sizeof(tally->touched));
}

void tally_clear(struct tally *tally)
{
    memset(tally->sums, 0, sizeof(tally->sums));
    for (int metric = 0; metric < METRICS; metric++) {
        if (metric_is_sketch((enum metric)metric)) {
            hll_clear(&tally->total[metric]);
        }
    }
    for (size_t i = 0; i < tally->n_points; i++) {
        memset(tally->points[i].values, 0, sizeof(tally->points[i].values));
    }
    clear_group(tally);
}

bool tally_sketch(struct tally *tally, enum metric metric, size_t point, const char *string,
    size_t n, bool *ret_nomem)
{
    size_t place = point % TALLY_GROUP;

    if (tally->n_points == 1) {
        return hll_merge(&tally->total[metric], string, n);
    }
    if (tally->group[metric] == NULL) {
        tally->group[metric] = malloc(TALLY_GROUP * sizeof(struct hll));
        if (tally->group[metric] == NULL) {
            *ret_nomem = true;
            return false;
        }
    }
    struct hll *own = &tally->group[metric][place];
    if (!tally->touched[metric][place]) {
        hll_clear(own);
        tally->touched[metric][place] = true;
    }
    return hll_merge(own, string, n);
}

void tally_sum(struct tally *tally, enum metric metric, size_t point, uint64_t value)
{
    tally->sums[metric] += value;
    tally->points[point].values[metric] += value;
}

void tally_end_group(struct tally *tally, size_t point)
{
    size_t first = point - point % TALLY_GROUP;

    for (int metric = 0; tally->n_points > 1 && metric < METRICS; metric++) {
        for (size_t i = 0; i < TALLY_GROUP; i++) {
            if (tally->touched[metric][i]) {
                const struct hll *own = &tally->group[metric][i];
                tally->points[first + i].values[metric] = hll_estimate(own);
                hll_unite(&tally->total[metric], own);
            }
        }
    }
    clear_group(tally);
}

uint64_t tally_total(const struct tally *tally, enum metric metric)
{
    return metric_is_sketch(metric) ? hll_estimate(&tally->total[metric]) : tally->sums[metric];
}

struct count_point *tally_take_points(struct tally *tally, size_t *ret_n)
{
    struct count_point *points = tally->points;

    *ret_n = tally->n_points;
    tally->points = NULL;
    tally->n_points = tally->capacity = 0;
    return points;
}
