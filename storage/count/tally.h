/* tally.h - what a question has read so far: the total and, for a series, the figure of each point.
 *
 * Layer: storage, pure.  One owner, a reader thread.  Memory is kept between questions, but for the
 * sketches of a series' points.
 *
 * The points of a series tile the window, so the total needs no keys of its own.  Of a sum the
 * total is the points' sum; of a sketch it is the union of the points' sketches, from the same
 * reading.
 *
 * A point's sketch takes 16 KB while it is read.  So that a year of hours does not need that much
 * for each hour, points are read in groups of TALLY_GROUP: all that belongs to one group is read
 * before anything of the next.
 */
#ifndef STORAGE_COUNT_TALLY_H
#define STORAGE_COUNT_TALLY_H

#include "storage/sketch/hll.h"
#include "storage/job/job.h"

#define TALLY_GROUP 16

struct tally {
    struct count_point *points; /* owned until tally_take_points */
    size_t n_points, capacity;
    uint64_t sums[METRICS];    /* of those that are sums */
    struct hll total[METRICS]; /* of those that are sketches */
    /* Owned: the sketches of the points at hand, and behind them of the last point, which may be
     * begun earlier.  NULL: not needed so far. */
    struct hll *group[METRICS][TALLY_GROUP + 1];
    bool touched[METRICS][TALLY_GROUP + 1];
};

/* In place of a point, for tally_sketch() and tally_unite(): it belongs to the total only.  So does
 * every sketch of what caps put together: no point has a bound of its own. */
#define TALLY_TOTAL SIZE_MAX

/* True: the metric is estimated from sketches; false: it is summed up. */
bool metric_is_sketch(enum metric metric);

/* What caps put together of @metric, one of the first four. */
static inline enum metric metric_other(enum metric metric)
{
    return (enum metric)(METRIC_OTHER_PV + metric);
}

void tally_release(struct tally *tally);

/* The question is answered: give back the sketches of points, up to 272 KB a metric.  Each reader
 * has a tally, and few of them read a series at a time. */
void tally_rest(struct tally *tally);

/* Cut @window into points by @step (STEP_MINUTE to STEP_MONTH), or with STEP_NONE into one point.
 * False: no memory. */
bool tally_cut(struct tally *tally, const struct zone *zone, enum step step, struct window window);

/* Begin to read: all is empty. */
void tally_clear(struct tally *tally);

/* Add a HyperLogLog of Redis, as Redis keeps it, to a point.  False: there is no memory
 * (*ret_nomem), or the string is none that Redis would accept. */
bool tally_sketch(struct tally *tally, enum metric metric, size_t point, const char *string,
    size_t n, bool *ret_nomem);
/* Add a sketch that was unpacked already.  False: no memory. */
bool tally_unite(struct tally *tally, enum metric metric, size_t point, const struct hll *sketch);
/* Add a number to a point. */
void tally_sum(struct tally *tally, enum metric metric, size_t point, uint64_t value);
/* Set a point's figure, which is known already.  A sketch's figure says nothing of the total. */
void tally_known(struct tally *tally, enum metric metric, size_t point, uint64_t value);

/* All that belongs to the group of @point has been read. */
void tally_end_group(struct tally *tally, size_t point);

/* The figure over all points. */
uint64_t tally_total(const struct tally *tally, enum metric metric);

/* The figure of @metric, one of the first four, if all that caps put together were the pages' own;
 * 0: they put nothing together.  The sketches of what they put together are overwritten. */
uint64_t tally_at_most(struct tally *tally, enum metric metric);

/* Give the points away; the caller frees them. */
struct count_point *tally_take_points(struct tally *tally, size_t *ret_n);

#endif
