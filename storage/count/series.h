/* series.h - what the points of a series came to, remembered.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; what is remembered is shared
 * (read/cache.h).
 *
 * A dashboard asks for 30 days by hour again every minute, and all but two of the 720 points are
 * over.  Of a point whose buckets are all closed for readers the figure is kept (figures.h): by the
 * point's window, so a point of another step or zone with the same borders is the same.  Its proof
 * is the `ver` of the partition, as that of runs is (read/run.h).  Where a question concerns
 * several partitions, the proof is a hash of the `ver` of each.
 *
 * A figure says nothing of the union over the window.  So for each stretch of points that are
 * recalled, the fewest buckets that cover the stretch are counted into the total: a `rest`, which
 * is a portion without points.  The runs of a rest are remembered, and are the same as those of a
 * question without a step.
 */
#ifndef STORAGE_COUNT_SERIES_H
#define STORAGE_COUNT_SERIES_H

#include "storage/count/question.h"

/* For a planned series: take what is remembered into q->tally, have q->known and the portions' runs
 * say what, and plan q->rest.  False: no memory, and q->tally is of no use. */
bool series_recall(struct count_question *q);

/* All was read, by replies that hold: remember the points that are over. */
void series_remember(struct count_question *q);

#endif
