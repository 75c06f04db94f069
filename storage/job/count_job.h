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
enum metric { METRIC_PV, METRIC_UV, METRIC_IPS, METRIC_VISITS };
#define METRICS 4

/* No process may take an event further ahead of Redis's clock than this.  (Readers take it that
 * nothing lies beyond: a window that reaches into next month needs few keys.) */
#define STORAGE_FUTURE_MAX_S 86400

/* A point of a series. */
struct count_point {
    struct window window;
    uint64_t values[METRICS];
};

/* Input and result of STORAGE_COUNT. */
struct count_job {
    enum metric metric;
    bool all_metrics; /* not just that one: all of them, of one reading */
    struct slice site;
    const struct slice *pages; /* the union of these pages; n_pages 0: the whole site */
    size_t n_pages;
    struct page_set_ref set; /* and of the pages of this set */
    struct window window;
    bool to_is_now;   /* window.to_s is the end of the current minute: moved on if Redis's clock is
                         ahead */
    bool round_outer; /* take the nearest answerable window instead of STORAGE_NOT_KEPT */
    bool explain;     /* list the keys */
    enum step step;   /* of a series beside the figure; STEP_NONE: none */
    const struct zone *zone; /* of the step */

    /* Written by storage.  On STORAGE_NOT_KEPT only answered, used and outer_works are written: the
     * nearest window that could be answered, from_s == to_s if there is none; the step that works
     * there, the one asked for if it does, STEP_NONE if it works without one only; and whether
     * round_outer would take it.  On STORAGE_TOO_FINE, STORAGE_TOO_MANY and STORAGE_TOO_BROAD used
     * is the finest step that would work, STEP_NONE if there is none, and whole_works says whether
     * the window works without a step; then answered is, on STORAGE_TOO_FINE, a later part of it
     * that could be answered with the one asked for, from_s == to_s if there is none. */
    uint64_t value;           /* of metric */
    uint64_t values[METRICS]; /* of each that was asked for */
    struct window answered;
    bool outer_works, whole_works;
    struct count_point *points; /* of the series, in time order; owned by the job */
    size_t n_points;
    enum step used;             /* the step; chosen here for STEP_AUTO */
    uint32_t per_level[LEVELS]; /* keys per level, over all pages and partitions read */
    struct counted_key *keys;   /* with explain, in time order; owned */
    size_t n_keys;
};

#endif
