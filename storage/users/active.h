/* active.h - how many users are in sets of days, and in two of them.
 *
 * Layer: storage.  One operation of a reader thread.
 * Users lie in one partition each, so counts of partitions add up.  Per partition the bitmaps come
 * piece by piece (GETRANGE), and are united, intersected and counted here: BITOP into temporary
 * keys takes Redis's only thread three times as long, in pieces that grow with the users, and
 * writes (see ARCHITECTURE.md).  A day alone is counted by BITCOUNT, which moves nothing.  No
 * command takes Redis more than a quarter of a millisecond, and no more than a few MB are asked for
 * ahead.
 */
#ifndef STORAGE_USERS_ACTIVE_H
#define STORAGE_USERS_ACTIVE_H

#include "storage/users/bitmaps.h"

reader_op_fn activity_run;

/* Ask for bytes [@at, @at + @n) of a set's bitmaps in @partition and unite or intersect them into
 * @words (8-byte words for @n bytes). */
enum storage_err activity_read_set(struct talk *talk, const struct activity_who *who,
    const struct activity_days *days, unsigned partition, uint64_t at, size_t n, uint64_t *words);

#endif
