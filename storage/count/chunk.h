/* chunk.h - what is left to read of a question, cut into pieces of bounded size.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread.
 *
 * A chunk is one piece (read/proved_read.h), so it holds Redis for a moment only.  What is recalled
 * is passed over; a partition of which nothing is left to read has an empty chunk all the same,
 * whose reply proves what is recalled.
 */
#ifndef STORAGE_COUNT_CHUNK_H
#define STORAGE_COUNT_CHUNK_H

#include "storage/count/question.h"

/* Cut the covers into q->chunks, group by group of points.  False: no memory. */
bool chunks_cut(struct count_question *q);

/* The point of bucket @i of the portion's cover; @point is that of an earlier one. */
size_t chunk_point_of(const struct portion *portion, size_t i, size_t point);

#endif
