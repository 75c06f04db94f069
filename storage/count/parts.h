/* parts.h - what each partition had of a run of visits, remembered for all of them in one value.
 *
 * Layer: storage, private to count/: whole.c and parts.c.  Belongs to a reader thread; what is
 * remembered is shared (read/cache.h).
 *
 * What all portions had together is remembered as one sum (whole.h).  It is of no use any more when
 * one partition has counted a late event.  Then the parts of the others are still true, and only
 * that partition is read.  A value for each part would take 80 bytes of the cache; here a part
 * takes 16, with a hash of the id that proves it.  Which portions are planned alike changes with
 * the minutes; the value is the same for all.
 */
#ifndef STORAGE_COUNT_PARTS_H
#define STORAGE_COUNT_PARTS_H

#include "storage/count/question.h"

/* The run, which each of the portions has. */
static inline const struct remembered_run *whole_run_of(
    const struct count_question *q, const struct whole_run *whole)
{
    return &q->portions[whole->first].runs.all[whole->run];
}

/* Portion @i of the whole has @sum. */
void parts_take(
    struct count_question *q, struct whole_run *whole, size_t i, enum metric metric, uint64_t sum);

/* Take the parts that are remembered, and are still proved by what was last seen of their
 * partitions, into q->tally, at @point, and mark them as recalled. */
void parts_recall(struct count_question *q, struct whole_run *whole, size_t point);

/* All was read, by replies that hold: remember the parts that are known, beside those of other
 * portions. */
void parts_keep(struct count_question *q, const struct whole_run *whole);

#endif
