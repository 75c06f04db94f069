/* series.h - what the points of a series came to, remembered.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; all threads share the cache
 * (read/cache.h).
 *
 * A dashboard asks for 30 days by hour again every minute, and all but two of the 720 points are
 * over.  If all buckets of a point are closed for readers, the point's figure is kept (figures.h)
 * by its window.  So a point of another step or zone with the same borders has the same figure.
 * The proof of a figure is the `ver` of the partition, as for runs (read/run.h).  If a question
 * concerns several partitions, the proof is a hash of the `ver` of each.
 *
 * The estimates of points do not tell how large their union over the window is.  So for each
 * stretch of recalled points, the fewest buckets that cover the stretch are united into the total:
 * they are a `rest`, a portion without points.  The runs of a rest are remembered, and are the same
 * as those of a question without a step.
 */
#ifndef STORAGE_COUNT_SERIES_H
#define STORAGE_COUNT_SERIES_H

#include "storage/count/question.h"

/* For a planned series: take what is remembered into q->tally, note in q->known and the portions'
 * runs which points that were, and plan q->rest.  False: no memory, and q->tally is of no use. */
bool series_recall(struct count_question *q);

/* Everything was read, and all replies hold: remember the points that are over. */
void series_remember(struct count_question *q);

#endif
