/* take.h - the reply to a chunk, if its plan still holds, added to the tally.
 *
 * Layer: storage, private to count/read.c.  storage/read/README.md, "What may be read".
 *
 * Ownership: the reply is the caller's; nothing of it is kept.  Thread safety: the reader's thread.
 */
#ifndef STORAGE_COUNT_TAKE_H
#define STORAGE_COUNT_TAKE_H

#include "storage/count/question.h"

/* Check the state, `ver` and time in @reply; then what it brings goes into counter->tally, and
 * closed buckets into the cache.  counter->stale: the plan did not hold, and nothing was taken.
 * On an error job->detail may say more. */
enum storage_err chunk_take(struct counter *counter, struct storage_job *job,
    const struct chunk *chunk, const struct reply *reply);

#endif
