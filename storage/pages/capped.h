/* capped.h - what caps put together in a window, and how much of it may belong to one name.
 *
 * Layer: storage, private to pages/.  Pure; belongs to a reader thread.
 *
 * The row of a name has what is counted under that name.  More of the name may be among what a cap
 * put together (places/places.h), if the name had no place in the hour, in its partition.  A name
 * that is in a bucket of an hour has had its place in all of that hour.  In a day or a month the
 * name may have been among the others in one hour and not in the next. */
#ifndef STORAGE_PAGES_CAPPED_H
#define STORAGE_PAGES_CAPPED_H

#include "storage/pages/sums.h"
#include "storage/time/cover.h"

/* What a cap put together in one bucket. */
struct capped_bucket {
    unsigned partition;
    size_t bucket; /* its index in the partition's cover */
    uint64_t pv;
};

/* A list of these.  Zeroed: empty. */
struct capped_buckets {
    struct capped_bucket *all; /* owned */
    size_t n, capacity;
};

/* Append a copy of @bucket.  False: out of memory. */
bool capped_buckets_add(
    struct capped_buckets *buckets, const struct capped_bucket *bucket) MUST_CHECK;

/* How many views in @buckets may belong to the name of @sum, which lies in @partition.  @cover is
 * the partition's; sum->present numbers its buckets. */
uint64_t capped_buckets_hide(const struct capped_buckets *buckets, const struct page_sum *sum,
    unsigned partition, const struct cover *cover, const struct zone *zone);

/* How many views @buckets have together. */
uint64_t capped_buckets_pv(const struct capped_buckets *buckets);

void capped_buckets_release(struct capped_buckets *buckets);

#endif
