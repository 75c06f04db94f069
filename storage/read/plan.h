/* plan.h - planning one window in several partitions: what all questions have in common.
 *
 * Layer: storage.  Thread-safe.
 */
#ifndef STORAGE_READ_PLAN_H
#define STORAGE_READ_PLAN_H

#include "storage/core/core.h"
#include "storage/time/cover.h"

#define BUCKETS_MAX 50000 /* in a cover */

/* What decides how a partition's view tiles a window of @zone, at @now_s by Redis's clock.  Points
 * into
 * @view.  No event is later than STORAGE_FUTURE_MAX_S; an hour is added for clocks that differ. */
struct cover_basis plan_basis(
    const struct zone *zone, const struct partition_view *view, int64_t now_s);

/* What to answer where a cover could not be planned. */
enum storage_err plan_error(enum cover_result result);

/* Widen @window until each of @partitions (bits) can tile it, by what was last seen of it.  False:
 * nothing of the window is kept. */
bool plan_widen(struct core *core, const struct zone *zone, uint64_t partitions, int64_t now_s,
    struct window *window);

#endif
