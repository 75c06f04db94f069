/* recall.h - runs of buckets that a planned count need not read, as their figures are remembered.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; all threads share the cache
 * (read/cache.h).
 *
 * What is kept of a run (read/run.h) is the union of its sketches, or its sum, over the pages that
 * are asked for: 12 KB at most instead of 12 KB a bucket, and one merge instead of dozens.  In a
 * series each point would have runs at its edges.  So only the first and the last point have runs;
 * count/series.h remembers the points between them.
 *
 * For visits one value has what each partition has of a run (read/kept_parts.h), and another has,
 * bucket by bucket, what all partitions have together (whole.h).
 *
 * The partition's `state` is read for every question all the same, in the same piece as what is
 * not remembered, and the answer is taken only if the proofs are still those that the runs were
 * read with.
 */
#ifndef STORAGE_COUNT_RECALL_H
#define STORAGE_COUNT_RECALL_H

#include "storage/count/question.h"

/* Find the runs of @point in all portions, append them to the portions' runs, and take what is
 * remembered of them into q->tally.  If several metrics of a run are asked for, all are recalled or
 * none.  A portion whose partition may recall nothing gets no runs.  False: no memory, and q->tally
 * is of no use. */
bool count_recall_point(struct count_question *q, size_t point);

/* The same for the portion @rest, which has no points. */
bool count_recall_rest(struct count_question *q, struct portion *rest);

/* All buckets of @run, which belong to @point, were read into q->run or q->run_sum: take the result
 * into q->tally, and remember it if one proof holds for all of it.  False: no memory. */
bool count_keep_run(struct count_question *q, enum metric metric, const struct portion *portion,
    const struct remembered_run *run, size_t point);

#endif
