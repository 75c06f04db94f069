/* plan.h - what decides how the buckets of a partition may tile a window.
 *
 * Layer: storage.  Thread-safe.
 *
 * time/cover.h makes the plan for one partition.  The plan follows from the state that was last
 * seen of the partition.
 */
#ifndef STORAGE_READ_PLAN_H
#define STORAGE_READ_PLAN_H

#include "storage/core/core.h"
#include "storage/time/cover.h"

#define BUCKETS_MAX 50000 /* a cover has so many buckets at most */

/* What cover.h needs to plan by @view, which must outlive the result.  @now_s is Redis's clock.
 * @latest_s (core_latest_s()) is the latest time at which anything was counted.  No event that was
 * counted then was further ahead than STORAGE_FUTURE_MAX_S; an hour is added for clocks that
 * differ. */
struct cover_basis plan_basis(
    const struct zone *zone, const struct partition_view *view, int64_t now_s, int64_t latest_s);

/* The answer to a job whose cover could not be planned; STORAGE_OK for COVER_OK. */
enum storage_err plan_error(enum cover_result result);

/* Do rollups lag by more than they always do for a while after the end of an hour or a day?  When
 * they have caught up, a question needs fewer keys.
 *
 * A plan that ended with STORAGE_TOO_BROAD although rollups do not lag is made once more: they may
 * have caught up after the plan looked at the states. */
bool plan_lags(struct core *core) MUST_CHECK;

/* The answer to a question whose whole plan, not one of several steps, ended with @err: while
 * rollups lag STORAGE_LAGGING takes the place of STORAGE_TOO_BROAD. */
enum storage_err plan_told(struct core *core, enum storage_err err);

#endif
