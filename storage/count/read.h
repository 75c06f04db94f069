/* read.h - the reading of a planned count: ask Redis for the keys, add up what comes.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread.
 */
#ifndef STORAGE_COUNT_READ_H
#define STORAGE_COUNT_READ_H

#include "storage/count/question.h"

/* Read the covers of all portions into q->tally, but for what is recalled.  q->read.stale: the
 * tally is of no use. */
enum storage_err count_read(struct count_question *q);

#endif
