/* active.h - how many users were active in sets of days, and how many in two sets both.
 *
 * Layer: storage.  One operation of a reader thread.
 *
 * Each user lies in one partition, so the counts of the partitions add up.  Per partition the
 * bitmaps come piece by piece (GETRANGE), and are united, intersected and counted here.  BITOP into
 * temporary keys takes Redis's only thread three times as long, in pieces that grow with the users,
 * and it writes.  A day alone is counted by BITCOUNT, which moves no bytes.
 *
 * No command takes Redis more than a quarter of a millisecond, and no more than a few MB are asked
 * for ahead.
 */
#ifndef STORAGE_USERS_ACTIVE_H
#define STORAGE_USERS_ACTIVE_H

#include "storage/users/bitmaps.h"

/* Read bytes [@at, @at + @n) of a set's bitmaps in @partition, and unite or intersect them into
 * @words (8-byte words, enough for @n bytes).  False: see pipe.err. */
bool activity_read_set(struct activity *a, const struct activity_who *who,
    const struct activity_days *days, unsigned partition, uint64_t at, size_t n,
    uint64_t *words) MUST_CHECK;

#endif
