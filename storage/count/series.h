/* series.h - what the points of a series came to, remembered.
 *
 * Layer: storage, private to count.c and count_*.c.  Belongs to a reader thread;
 * what is remembered is shared (cache.h).
 *
 * A dashboard asks for 30 days by hour again every minute, and all but two of the 720 points are
 * over.  Of a point whose buckets are all closed for readers its figure is kept, 8 bytes a metric,
 * by its window (so a point of another step or zone with the same borders is the same), and proved
 * as runs are (count/recall.h): by the `ver` of the replies that it was read with, and that of the
 * reply now.  Where a question concerns several partitions, that of each: the proof is a hash of
 * them all.
 *
 * A figure says nothing of the union over the window.  So for each stretch of points that are
 * recalled the fewest buckets that cover it (a `rest`: a shard without points) are counted into the
 * total, and these are runs: remembered, and the same as those of a question without a step.
 */
#ifndef STORAGE_COUNT_SERIES_H
#define STORAGE_COUNT_SERIES_H

#include "storage/count/question.h"

/* For a planned series: take what is remembered into c->tally, have c->known and the shards' runs
 * say what, and plan c->rest.  False: no memory, c->tally is of no use. */
bool series_recall(struct counter *c, const struct count_job *job);

/* All was read, by replies that hold: remember the points that are over. */
void series_remember(struct counter *c, const struct count_job *job);

#endif
