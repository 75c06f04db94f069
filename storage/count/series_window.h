/* series_window.h - which part of a window has a series of the step that is asked for.
 *
 * Layer: storage, private to count.c.  Belongs to a reader thread.
 */
#ifndef STORAGE_COUNT_SERIES_WINDOW_H
#define STORAGE_COUNT_SERIES_WINDOW_H

#include "storage/count/question.h"

/* The latest part of @outer, which can be tiled as a whole, whose inner borders of @step (not
 * STEP_AUTO) are borders of what is kept in all partitions that are asked.  The past is kept
 * coarser the older it is, so that is everything behind the last border which is none.  False:
 * nothing is left, or it has more points than are answered. */
bool series_window(const struct counter *c, const struct zone *zone, enum step step,
    struct window outer, int64_t now_s, struct window *ret);

#endif
