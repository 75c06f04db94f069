/* window.h - one window in several partitions: its plan.
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

#define READS_MAX         200000 /* a question reads at most so many keys */
#define READS_A_PARTITION 256    /* or so many a partition, if more: any 13 months take 235 */

/* Plan r->window, or with round_outer what is answerable around it, into r->covers of
 * @partitions.  r->asked->answered is what was planned.
 *
 *     STORAGE_NOT_KEPT   r->asked->answered is the nearest window that could be answered, from_s ==
 *                        to_s if there is none
 *     STORAGE_TOO_BROAD  more buckets than that, or with explain more than may be listed */
enum storage_err window_plan(struct proved_read *r, const struct part_set *partitions);

/* Widen @window until each of @partitions can tile it, by what was last seen of the partition.
 * False: nothing of the window is kept. */
bool window_widen(
    const struct proved_read *r, const struct part_set *partitions, struct window *window);

#endif
