/* recall.h - what a planned count need not read: runs of buckets whose figures are remembered.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; what is remembered is shared
 * (read/cache.h).
 *
 * What is kept of a run (read/run.h) is the union of its sketches, or its sum, over the pages that
 * are asked for: 12 KB at most instead of 12 KB a bucket, and one merge instead of dozens.  Of a
 * series, whose points would each have edges of their own, only the first and the last point have
 * runs; the other points are in count/series.h.
 *
 * What each partition has of visits is remembered together (read/kept_parts.h); and bucket by
 * bucket what all have together (whole.h).
 *
 * The partition's `state` is read for every question all the same, in the same piece as what is
 * not remembered, and the answer is taken only if the proofs are still those that the runs were
 * read with.
 */
#ifndef STORAGE_COUNT_RECALL_H
#define STORAGE_COUNT_RECALL_H

#include "storage/count/question.h"

/* Find the runs of @point in all portions, behind the runs that they have, and take what is
 * remembered of them into q->tally.  A run of which several metrics are asked is recalled in all of
 * them or not at all.  Of portions that may recall nothing there are none.  False: no memory, and
 * q->tally is of no use. */
bool count_recall_point(struct count_question *q, size_t point);

/* The same for a portion of no point. */
bool count_recall_rest(struct count_question *q, struct portion *rest);

/* All of @run's buckets, of @point, were read into q->run or q->run_sum: take them into q->tally,
 * and remember them if one proof holds for all.  False: no memory. */
bool count_keep_run(struct count_question *q, enum metric metric, const struct portion *portion,
    const struct remembered_run *run, size_t point);

#endif
