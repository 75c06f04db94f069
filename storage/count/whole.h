/* whole.h - what closed buckets of visits came to in all partitions together, remembered.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; all threads share the cache
 * (read/cache.h).
 *
 * Visits lie with their visitors, in up to 64 partitions, so a question about visits has a portion
 * in each.  A window that begins or ends elsewhere has other runs, of which nothing is remembered
 * in any partition (recall.h).  So closed buckets are kept one by one, too, each summed over all
 * partitions (figures.h), with a hash of the partitions' `ver` for their proof.  A bucket is read
 * from 64 partitions once, and then it is known for every window.  Each partition has to prove that
 * its own id still holds.
 */
#ifndef STORAGE_COUNT_WHOLE_H
#define STORAGE_COUNT_WHOLE_H

#include "storage/count/question.h"

/* To be called when the portions' runs of @point were found.  Take the runs whose buckets are all
 * known into q->tally, and mark these runs as recalled in all portions of visits.  The buckets of
 * the other runs are added up from now on.  False: no memory. */
bool whole_recall(struct count_question *q, size_t point);

/* Bucket @i of the plan, which is in @run of @portion, was read: @sum of @metric is in it. */
void whole_add(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, size_t i, enum metric metric, uint64_t sum);

/* All buckets of @run, of a portion of visits, were added, and one proof stands for all of them. */
void whole_keep(struct count_question *q, const struct remembered_run *run);

/* Everything was read, and all replies hold: remember the buckets that all portions have added. */
void whole_remember(struct count_question *q);

#endif
