/* window.h - plan one window in several partitions.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A question that asks each partition the same plans its window with window_plan(): a cover for
 * each partition.  (A count with a step has a cover for each point: count/plan.h.)
 */
#ifndef STORAGE_READ_WINDOW_H
#define STORAGE_READ_WINDOW_H

#include "storage/read/proved_read.h"
#include "storage/schema/part_set.h"

/* A question reads at most READS_MAX buckets, or sketches.  If READS_A_PARTITION for each partition
 * are more buckets, so many: any 13 months take 235. */
#define READS_MAX         200000
#define READS_A_PARTITION 256

/* Plan r->window into r->covers of @partitions.  If the window can not be answered and
 * r->asked->round_outer, plan the smallest answerable window around it.  r->asked->answered becomes
 * the window that was planned.
 *
 *     STORAGE_NOT_KEPT   r->asked->answered is the nearest window that could be answered; from_s ==
 *                        to_s: there is none
 *     STORAGE_TOO_BROAD  the covers have more buckets than the limits above, or with explain more
 *                        than COUNTED_KEYS_MAX
 *     STORAGE_LAGGING    the same while rollups lag: see plan_told() */
enum storage_err window_plan(struct proved_read *r, const struct part_set *partitions);

/* Widen @window until each of @partitions can tile it, by what was last seen of the partition.
 * False: nothing of the window is kept. */
bool window_widen(
    const struct proved_read *r, const struct part_set *partitions, struct window *window);

#endif
