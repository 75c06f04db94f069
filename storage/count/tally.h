/* tally.h - what a question has read so far: the totals and, for a series, each point's own.
 *
 * Layer: storage, pure.  One owner (a reader thread); scratch memory is kept between questions.
 *
 * The points tile the window, so the total needs no keys of its own: a sum is the points' sum, a
 * sketch the union of theirs, of the same reading.  Sketches of points are kept in groups of
 * TALLY_GROUP, so that a year of hours does not need 16 KB an hour: what is read for one group is
 * read before anything of the next.
 */
#ifndef STORAGE_COUNT_TALLY_H
#define STORAGE_COUNT_TALLY_H

#include "storage/sketch/hll.h"
#include "storage/job/job.h"

#define TALLY_GROUP 32

struct tally {
    struct count_point *points; /* owned until tally_take_points */
    size_t n_points, capacity;
    uint64_t sums[METRICS];    /* of those that are sums */
    struct hll total[METRICS]; /* of those that are sketches */
    /* owned: of the points at hand, and behind them of the last point, which may be begun earlier;
     * NULL: not needed so far */
    struct hll *group[METRICS];
    bool touched[METRICS][TALLY_GROUP + 1];
};

/* tally_sketch(), tally_unite(): in place of a point: belongs to the total only. */
#define TALLY_TOTAL SIZE_MAX

/* Is it estimated from sketches, or summed up? */
bool metric_is_sketch(enum metric metric);

void tally_release(struct tally *tally);

/* Cut @window into points: by @step (STEP_MINUTE to STEP_MONTH), or for STEP_NONE into one. False:
 * no memory. */
bool tally_cut(struct tally *tally, const struct zone *zone, enum step step, struct window window);

/* Begin to read: all is empty. */
void tally_clear(struct tally *tally);

/* Add a Redis HyperLogLog string, or a number, to a point.  False: it is none that Redis would
 * accept, or (no memory) it could not be taken: *ret_nomem. */
bool tally_sketch(struct tally *tally, enum metric metric, size_t point, const char *string,
    size_t n, bool *ret_nomem);
/* The same with a sketch that was unpacked already.  False: no memory. */
bool tally_unite(struct tally *tally, enum metric metric, size_t point, const struct hll *sketch);
void tally_sum(struct tally *tally, enum metric metric, size_t point, uint64_t value);
/* A point's figure that is known already.  (A sketch's says nothing of the total.) */
void tally_known(struct tally *tally, enum metric metric, size_t point, uint64_t value);

/* All that belongs to the group of @point has been read. */
void tally_end_group(struct tally *tally, size_t point);

/* The figure over all points. */
uint64_t tally_total(const struct tally *tally, enum metric metric);

/* Give the points away; the caller frees them. */
struct count_point *tally_take_points(struct tally *tally, size_t *ret_n);

#endif
