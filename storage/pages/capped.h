/* capped.h - what caps put together in a window, and how much of it may belong to one name.
 *
 * Layer: storage, private to pages/.  Pure; belongs to a reader thread.
 *
 * What is counted for a name under its own stands in its row.  More of it may be among what a cap
 * put together (places/places.h), where the name had no place: in that hour, and in its partition.
 * A name that is in a bucket of an hour has had its place in all of that hour.  In a day or a month
 * it may have been among the others in one hour and not in the next. */
#ifndef STORAGE_PAGES_CAPPED_H
#define STORAGE_PAGES_CAPPED_H

#include "storage/pages/sums.h"
#include "storage/time/cover.h"

/* What was put together in a bucket of a partition's cover. */
struct capped_bucket {
    unsigned partition;
    size_t bucket;
    uint64_t pv;
};

/* Zeroed: nothing. */
struct capped_buckets {
    struct capped_bucket *all; /* owned */
    size_t n, capacity;
};

/* False: out of memory. */
bool capped_buckets_add(
    struct capped_buckets *buckets, const struct capped_bucket *bucket) MUST_CHECK;

/* How much of it all may be @sum's, a name in @partition with this @cover. */
uint64_t capped_buckets_hide(const struct capped_buckets *buckets, const struct page_sum *sum,
    unsigned partition, const struct cover *cover, const struct zone *zone);

/* How much it is together. */
uint64_t capped_buckets_pv(const struct capped_buckets *buckets);

void capped_buckets_release(struct capped_buckets *buckets);

#endif
