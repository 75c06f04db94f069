/* plan.h - what decides how the buckets of a partition may tile a window.
 *
 * Layer: storage.  Thread-safe.
 *
 * time/cover.h makes the plan for one partition.  What it needs to know comes from the state that
 * was last seen of the partition.
 */
#ifndef STORAGE_READ_PLAN_H
#define STORAGE_READ_PLAN_H

#include "storage/core/core.h"
#include "storage/time/cover.h"

#define BUCKETS_MAX 50000 /* in a cover */

/* What cover.h needs to plan by @view, which must live as long, at @now_s by Redis's clock, where
 * nothing was written after @latest_s (core_latest_s()).  When it was written no event was later
 * than STORAGE_FUTURE_MAX_S; an hour is added for clocks that differ. */
struct cover_basis plan_basis(
    const struct zone *zone, const struct partition_view *view, int64_t now_s, int64_t latest_s);

/* The job's error where a cover could not be planned. */
enum storage_err plan_error(enum cover_result result);

/* Do rollups lag by more than at the end of each hour and day?  When they have caught up a question
 * needs fewer keys.
 *
 * A plan that ended with STORAGE_TOO_BROAD where they do not lag is made once more: they may have
 * caught up since the states were looked at by which it was made. */
bool plan_lags(struct core *core) MUST_CHECK;

/* What a question is told that ended with @err as a whole, not with one of several steps:
 * STORAGE_LAGGING in place of STORAGE_TOO_BROAD while rollups lag. */
enum storage_err plan_told(struct core *core, enum storage_err err);

#endif
