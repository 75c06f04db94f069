/* pieces.h - what is left to read of a question, cut into pieces of bounded size.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread.
 *
 * A piece is what read/proved_read.h says: one MULTI on one partition, which holds Redis for a
 * moment only.  Buckets that are recalled are passed over.  A partition of which nothing is left to
 * read has an empty piece all the same: its reply proves what is recalled.
 */
#ifndef STORAGE_COUNT_PIECES_H
#define STORAGE_COUNT_PIECES_H

#include "storage/count/question.h"

/* Cut the covers into q->pieces, group by group of points.  False: no memory. */
bool pieces_cut(struct count_question *q);

/* The point of bucket @i of the portion's cover; @point is that of an earlier one. */
size_t portion_point_of(const struct portion *portion, size_t i, size_t point);

#endif
