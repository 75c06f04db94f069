/* bucket_sums.h - what single buckets came to in all partitions, remembered in one value.
 *
 * Layer: storage, private to count/whole.c.  What is remembered is shared (read/cache.h).
 *
 * A window that was not asked before is made of buckets that are known.  One that moves on with the
 * minutes begins a minute later each time: of yesterday's hour it needs 40 minutes, then 39.  So
 * the buckets of one coarser bucket are remembered together: an hour's minutes, a day's hours, a
 * month's days.  A value for each would take 80 bytes of the cache; here a bucket takes 16.
 */
#ifndef STORAGE_COUNT_BUCKET_SUMS_H
#define STORAGE_COUNT_BUCKET_SUMS_H

#include "storage/read/cache.h"
#include "storage/read/run.h"

#define BUCKET_SUMS_MAX 64 /* no hour, day or month has more buckets of the next finer level */

/* The buckets of a run that are remembered so: @n of one level, no months.  Their sums are every
 * @stride-th number. */
struct bucket_run {
    const struct zone *zone;
    const struct bucket *buckets;
    size_t n;
    size_t stride;
};

/* If all buckets of @run are remembered under @name, with the proof @ver, add up what they have. */
bool bucket_sums_find(struct cache *cache, const struct cache_id *name, const struct ver *ver,
    const struct bucket_run *run, uint64_t *ret_sum);

/* Remember what the buckets of @run have, beside what is remembered with the same proof. */
void bucket_sums_keep(struct cache *cache, const struct cache_id *name, const struct ver *ver,
    const struct bucket_run *run, const uint64_t *sums);

#endif
