/* tally.h - what a question has read so far: the total and, for a series, the figure of each point.
 *
 * Layer: storage, pure.  Belongs to a reader thread.  Memory is kept between questions, but for the
 * sketches of a series' points.
 *
 * The points of a series tile the window, so the total needs no keys of its own.  For a sum the
 * total is the sum over the points; for a sketch it is the union of the points' sketches, from the
 * same reading.
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
    struct count_point *points; /* owned until tally_take_points() */
    size_t n_points, capacity;
    uint64_t sums[METRICS];    /* the totals of metrics that are sums */
    struct hll total[METRICS]; /* the totals of metrics that are sketches */
    /* Owned: the sketches of the group of points at hand, and behind them that of the last point,
     * which may be begun before its group.  NULL: not needed so far. */
    struct hll *group[METRICS][TALLY_GROUP + 1];
    bool touched[METRICS][TALLY_GROUP + 1]; /* the sketch has something in it */
};

/* Stands in place of a point, for tally_sketch() and tally_unite(): the sketch goes into the total
 * only.  Every sketch of what caps put together does: no point has a bound of its own. */
#define TALLY_TOTAL SIZE_MAX

/* True: the metric is estimated from sketches; false: it is summed up. */
bool metric_is_sketch(enum metric metric);

/* The metric that holds what caps put together of @metric, one of the first four. */
static inline enum metric metric_other(enum metric metric)
{
    return (enum metric)(METRIC_OTHER_PV + metric);
}

void tally_release(struct tally *tally);

/* The question is answered: free the sketches of points, up to 272 KB a metric.  Each reader has a
 * tally, and few readers read a series at a time. */
void tally_rest(struct tally *tally);

/* Cut @window into points by @step (STEP_MINUTE to STEP_MONTH), or with STEP_NONE into one point.
 * False: no memory. */
bool tally_cut(struct tally *tally, const struct zone *zone, enum step step, struct window window);

/* Set all figures to 0, and empty all sketches, before a reading.  The points stay. */
void tally_clear(struct tally *tally);

/* Add a HyperLogLog, the @n bytes of @string as Redis keeps it, to a point.  False: no memory
 * (*ret_nomem is true), or the string is not a HyperLogLog that Redis would accept. */
bool tally_sketch(struct tally *tally, enum metric metric, size_t point, const char *string,
    size_t n, bool *ret_nomem);
/* Add a sketch that was unpacked already.  False: no memory. */
bool tally_unite(struct tally *tally, enum metric metric, size_t point, const struct hll *sketch);
/* Add a number to a point, and to the total. */
void tally_sum(struct tally *tally, enum metric metric, size_t point, uint64_t value);
/* Set a point's figure, which is known already.  A sum is added to the total, too; an estimate is
 * not, as it does not tell how large a union is. */
void tally_known(struct tally *tally, enum metric metric, size_t point, uint64_t value);

/* Everything that belongs to the group of @point was read: estimate its points, and unite their
 * sketches with the total. */
void tally_end_group(struct tally *tally, size_t point);

/* The figure over all points. */
uint64_t tally_total(const struct tally *tally, enum metric metric);

/* The figure that @metric, one of the first four, would have if everything that caps put together
 * belonged to the pages asked for.  0: caps have put nothing together.  The total sketch of
 * metric_other() is overwritten. */
uint64_t tally_at_most(struct tally *tally, enum metric metric);

/* Give the points away; the caller frees them. */
struct count_point *tally_take_points(struct tally *tally, size_t *ret_n);

#endif
