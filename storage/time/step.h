/* step.h - cuts a window into the points of a series: equal steps of a zone's clocks.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * A question may ask for a series beside its one figure: a figure per minute, hour, day and so on.
 * The first and the last point are cut to the window.  A step of up to an hour is cut at each
 * change of the zone's offset, so an hour that comes twice is two points.  Weeks begin on Monday.
 */
#ifndef STORAGE_TIME_STEP_H
#define STORAGE_TIME_STEP_H

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/time/bucket.h"

#define STEP_POINTS_MAX 11000 /* points of a series */
#define STEP_AUTO_MAX   500   /* points of a series whose step storage chooses */

/* The steps, from fine to coarse.
 *    name, text, and how long a step usually is: for a month the shortest, for the others the
 *    length without a change of the zone's clocks */
#define STEPS(X)                                                                                   \
    X(STEP_NONE, "", 0)                                                                            \
    X(STEP_MINUTE, "1m", MINUTE_S)                                                                 \
    X(STEP_5_MINUTES, "5m", 5 * MINUTE_S)                                                          \
    X(STEP_15_MINUTES, "15m", 15 * MINUTE_S)                                                       \
    X(STEP_HOUR, "1h", HOUR_S)                                                                     \
    X(STEP_DAY, "1d", DAY_S)                                                                       \
    X(STEP_WEEK, "1w", 7 * DAY_S)                                                                  \
    X(STEP_MONTH, "1M", 28 * DAY_S)                                                                \
    X(STEP_AUTO, "auto", 0) /* the finest that works with STEP_AUTO_MAX points */

enum step {
#define X(name, text, length_s) name,
    STEPS(X)
#undef X
};

/* The text of a step, static: "1h" for STEP_HOUR. */
const char *step_name(enum step step);

/* Read the text of a step.  False, with @ret untouched: @text is no such text, or "". */
bool step_parse(struct slice text, enum step *ret) MUST_CHECK;

/* How long a step usually is (see STEPS), in seconds. */
int64_t step_length_s(enum step step);

/* The end of the step that holds @at_s.  @step is one of STEP_MINUTE to STEP_MONTH. */
int64_t step_end(const struct zone *zone, enum step step, int64_t at_s);

/* How many points @window has.  Counts no further than @limit + 1. */
size_t step_count(const struct zone *zone, enum step step, struct window window, size_t limit);

/* The finest step with which @window has at most @limit points; STEP_NONE if there is none. */
enum step step_fitting(const struct zone *zone, struct window window, size_t limit);

#endif
