/* whole.h - what a run of visits came to in all partitions together, remembered.
 *
 * Layer: storage, private to count/.  Belongs to a reader thread; what is remembered is shared
 * (read/cache.h).
 *
 * Visits lie with their visitors, in up to 64 partitions, so a question about them has a portion
 * in each, and all of these are planned alike as a rule.  What they come to together is kept as one
 * value, by a hash of the proofs of all.  Then each partition has to say that its own proof holds.
 * What each has is kept as well (parts.h), for the case that one proof does not hold any more.
 *
 * A window that begins or ends elsewhere has other runs.  So the buckets of closed runs are kept
 * one by one, too (figures.h): a bucket is read of 64 partitions once, and then it is known for
 * every window.
 */
#ifndef STORAGE_COUNT_WHOLE_H
#define STORAGE_COUNT_WHOLE_H

#include "storage/count/question.h"

/* How many portions from @first on ask for the same of visits and have the same runs, by their
 * plans.  0: the first one is not of visits, or nothing may be recalled of it. */
size_t whole_portions(const struct count_question *q, size_t first);

enum whole_found { WHOLE_RECALLED, WHOLE_UNKNOWN, WHOLE_NOMEM };

/* Of @n such portions, take what is remembered of their runs number @run together into q->tally, at
 * @point, and mark these as recalled.  WHOLE_UNKNOWN: of some portions it is not known.  Those must
 * be read, and it is added up from now on. */
enum whole_found whole_recall(
    struct count_question *q, size_t first, size_t n, size_t run, size_t point);

/* Is @run of @portion a part of such a whole?  Then it is not remembered by itself. */
bool whole_has(const struct count_question *q, const struct portion *portion,
    const struct remembered_run *run);

/* A run of @portion was read, and has come to @sum, which may be kept. */
void whole_add(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, enum metric metric, uint64_t sum);

/* Bucket @i of the plan, which is in @run, was read: it has @sum.  That is a part of what
 * whole_add() is told of the run. */
void whole_add_bucket(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, size_t i, enum metric metric, uint64_t sum);

/* All was read, by replies that hold: remember what was added up of all portions. */
void whole_remember(struct count_question *q);

#endif
