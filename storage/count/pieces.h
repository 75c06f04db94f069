/* pieces.h - what is left to read of a question, cut into pieces of bounded size.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread.
 *
 * A piece (read/proved_read.h) is one MULTI on one partition, which holds Redis up for a moment
 * only; or a plain one.  Buckets that are recalled are passed over.  A partition of which nothing
 * is left to read has an empty piece all the same: its reply proves what is recalled.
 */
#ifndef STORAGE_COUNT_PIECES_H
#define STORAGE_COUNT_PIECES_H

#include "storage/count/question.h"

/* Cut the covers of all portions into q->pieces, in the order of the groups of points (tally.h),
 * and count q->reads.  False: no memory. */
bool pieces_cut(struct count_question *q);

/* The point that bucket @i of the portion's cover belongs to; @point is that of an earlier bucket.
 * For a rest @point itself. */
size_t portion_point_of(const struct portion *portion, size_t i, size_t point);

#endif
