/* window.h - one window in several partitions: its plan, and the keys that it was read from.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A question that asks each partition the same plans its window with window_plan(): a cover for
 * each partition.  (A count with a step has a cover for each point: count/plan.h.)  What was read
 * is told to the user as numbers of keys by level and, with explain, as a list.
 */
#ifndef STORAGE_READ_WINDOW_H
#define STORAGE_READ_WINDOW_H

#include "storage/read/proved_read.h"
#include "storage/schema/part_set.h"

#define READS_MAX         200000 /* keys of one question.. */
#define READS_A_PARTITION 256    /* ..but never fewer in each: any 13 months take 235 */

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

/* Count the key of each bucket of @cover, or those of @n_pages pages, and with explain list them.
 * Errors: see counted_keys_add() in read/listed_keys.h. */
enum storage_err window_count_keys(struct proved_read *r, unsigned partition, enum key_kind kind,
    const struct slice *const *pages, size_t n_pages, const struct cover *cover);

/* Forget the keys that were counted, of this attempt or of one on another connection. */
void window_clear_keys(struct proved_read *r);

/* Put the keys that were listed in order of time. */
void window_sort_keys(struct window_question *asked);

#endif
