/* join.h - questions that are the same get one answer: STORAGE_COUNT and STORAGE_PAGES.
 *
 * Layer: storage, private to readers.c.  Thread-safe: no state.
 * A question may join an identical one only while nothing of that one was sent
 * (ARCHITECTURE.md, "Remembering what is over"):
 * then the answer is of a time after both were asked.  readers.c sees to the when.
 */
#ifndef STORAGE_COUNT_JOIN_H
#define STORAGE_COUNT_JOIN_H

#include "storage/job/job.h"

/* Would the answer to @a be the answer to @b?  Not with explain or a page set: lists of keys and of
 * pages are owned.  (Without a step the zone says nothing.) */
bool question_same(const struct storage_job *a, const struct storage_job *b);

/* Equal for questions that are the same, and hardly ever for others; 0: of no kind that is ever the
 * same. */
uint64_t question_hash(const struct storage_job *job);

/* Give @to the result of @from.  False: no memory for its points or rows. */
bool question_share(const struct storage_job *from, struct storage_job *to);

#endif
