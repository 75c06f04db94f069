/* step.h - the points of a series: a window cut into equal steps of a zone's clocks.
 *
 * Layer: storage, pure.  Thread-safe.
 * The first and the last point are cut to the window.  Steps of up to an hour are cut at changes of
 * the zone's offset, so an hour that comes twice is two points; weeks begin on Monday.
 */
#ifndef STORAGE_TIME_STEP_H
#define STORAGE_TIME_STEP_H

#include "storage/base/slice.h"
#include "storage/time/bucket.h"

#define STEP_POINTS_MAX 11000 /* of a series */
#define STEP_AUTO_MAX   500   /* of one whose step is chosen here */

/* From fine to coarse.
 *    name          text */
#define STEPS(X)                                                                                   \
    X(STEP_NONE, "")                                                                               \
    X(STEP_MINUTE, "1m")                                                                           \
    X(STEP_5_MINUTES, "5m")                                                                        \
    X(STEP_15_MINUTES, "15m")                                                                      \
    X(STEP_HOUR, "1h")                                                                             \
    X(STEP_DAY, "1d")                                                                              \
    X(STEP_WEEK, "1w")                                                                             \
    X(STEP_MONTH, "1M")                                                                            \
    X(STEP_AUTO, "auto") /* the finest that works with STEP_AUTO_MAX points */

enum step {
#define X(name, text) name,
    STEPS(X)
#undef X
};

/* "1h" */
const char *step_name(enum step step);

/* The reverse; false for anything else, also "". */
bool step_parse(struct slice text, enum step *ret);

/* The end of the step (STEP_MINUTE to STEP_MONTH) that holds @at_s. */
int64_t step_end(const struct zone *zone, enum step step, int64_t at_s);

/* How many points @window has; @limit + 1 if there are more than @limit. */
size_t step_count(const struct zone *zone, enum step step, struct window window, size_t limit);

/* The finest step with at most @limit points; STEP_NONE if there is none. */
enum step step_fitting(const struct zone *zone, struct window window, size_t limit);

#endif
