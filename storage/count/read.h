/* read.h - read a planned count: ask Redis for the keys, and add up the replies.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread.
 */
#ifndef STORAGE_COUNT_READ_H
#define STORAGE_COUNT_READ_H

#include "storage/count/question.h"

/* Read the covers of all portions into q->tally; what is recalled is not read.  If q->read.stale,
 * the tally is of no use. */
enum storage_err count_read(struct count_question *q);

#endif
