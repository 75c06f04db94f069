/* count_job.h - how many page views, visitors, addresses and visits a window has.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_COUNT_JOB_H
#define STORAGE_JOB_COUNT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/window_job.h"
#include "storage/time/bucket.h"
#include "storage/time/cover.h"
#include "storage/time/step.h"

/* What can be counted over a window. */
enum metric {
    METRIC_PV,
    METRIC_UV,
    METRIC_IPS,
    METRIC_VISITS,
    /* Of the whole site's visits: those that came to a second event in the window, and the seconds
     * that visits grew by in it. */
    METRIC_ENGAGED,
    METRIC_SECONDS,
    /* Like the first four, for what caps put together in the partitions of the pages. */
    METRIC_OTHER_PV,
    METRIC_OTHER_UV,
    METRIC_OTHER_IPS,
    METRIC_OTHER_VISITS,
};
#define METRICS 10

/* No process may take an event further ahead of Redis's clock than this.  Readers rely on that: no
 * event lies beyond, so a window that reaches into next month needs few keys. */
#define STORAGE_FUTURE_MAX_S 86400

/* A point of a series. */
struct count_point {
    struct window window;
    uint64_t values[METRICS];
};

/* STORAGE_COUNT: a figure over a window and, with a step, over each point of a series.
 *
 * Storage writes the last part.  Which members it writes depends on how the job ends:
 *
 *     STORAGE_OK         all of them; of `values`, the metrics that were asked for
 *     STORAGE_NOT_KEPT   asked.answered: the nearest window that could be answered, from_s == to_s
 *                            if there is none
 *                        used: the step that works there: the one asked for if it does, STEP_NONE
 *                            if only a question without a step works
 *                        outer_works: round_outer would take asked.answered
 *     STORAGE_TOO_FINE,  used: the finest step that would work, STEP_NONE if there is none
 *     STORAGE_TOO_MANY,  whole_works: the window works without a step
 *     STORAGE_TOO_BROAD  asked.answered, on STORAGE_TOO_FINE only and if used is STEP_NONE: a later
 *                            part of the window that works with the step asked for, from_s == to_s
 *                            if there is none
 *
 * at_most: where a cap put names together (places/places.h), some of these names may have been the
 * pages asked for.  Then the figure lies between `values` and `at_most`.  With all_metrics
 * `at_most` bounds the page views, and no other figure of the pages can be more.  For visitors and
 * addresses `at_most` is an estimate, too: of those of the pages and of all that was put together.
 *
 * A question that many ask is answered once for all of them: count_same() in count/count.c compares
 * the members of the first part. */
struct count_job {
    struct window_question asked; /* site and window, and which keys were read */
    enum metric metric;
    bool all_metrics;          /* all of the first four metrics, from one reading; not `metric` */
    bool visit_sums;           /* ENGAGED and SECONDS too; with all_metrics, of the whole site */
    bool bounded;              /* write at_most, too; for pages or named events */
    const struct slice *pages; /* the union of these pages; n_pages 0: the whole site */
    size_t n_pages;
    struct page_set_ref set; /* the union includes the pages of this set */
    enum step step;          /* of a series beside the figure; STEP_NONE: no series */
    const struct zone *zone; /* the points of the series are cut in this zone */

    /* Written by storage. */
    uint64_t values[METRICS];   /* the figure of each metric that was asked for */
    uint64_t at_most;           /* see `bounded`; 0: no cap put anything together, or !bounded */
    struct count_point *points; /* of the series, in time order; owned by the job */
    size_t n_points;
    enum step used; /* the step; chosen by storage for STEP_AUTO */
    bool outer_works, whole_works;
};

#endif
