/* whole.h - what closed buckets of visits came to in all partitions together, remembered.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; what is remembered is shared
 * (read/cache.h).
 *
 * Visits lie with their visitors, in up to 64 partitions, so a question about them has a portion in
 * each.  A window that begins or ends elsewhere has other runs, of which no partition's part is
 * remembered (recall.h).  So closed buckets are kept one by one, too, each summed over all
 * partitions (figures.h), by a hash of their `ver`.  A bucket is read of 64 partitions once, and
 * then it is known for every window.  Each partition has to say that its own id holds.
 */
#ifndef STORAGE_COUNT_WHOLE_H
#define STORAGE_COUNT_WHOLE_H

#include "storage/count/question.h"

/* The portions' runs of @point were found.  Take those whose buckets are all known into q->tally,
 * and mark them as recalled in all portions of visits.  The others are added up from now on.
 * False: no memory. */
bool whole_recall(struct count_question *q, size_t point);

/* Bucket @i of the plan, which is in @run of @portion, was read: it has @sum. */
void whole_add(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, size_t i, enum metric metric, uint64_t sum);

/* All of @run, of a portion of visits, was added, and one proof stands for it. */
void whole_keep(struct count_question *q, const struct remembered_run *run);

/* All was read, by replies that hold: remember what all portions have. */
void whole_remember(struct count_question *q);

#endif
