#include "storage/pages/capped.h"

#include <stdlib.h>

#include "storage/pages/table.h"

bool capped_buckets_add(struct capped_buckets *buckets, const struct capped_bucket *bucket)
{
    if (!array_reserve(&buckets->all, &buckets->capacity, buckets->n, sizeof(*buckets->all))) {
        return false;
    }
    buckets->all[buckets->n++] = *bucket;
    return true;
}

/* Is the name in a bucket of the hour that bucket @i, an hour or a minute, lies in? */
static bool is_in_hour(
    const struct page_sum *sum, size_t i, const struct cover *cover, const struct zone *zone)
{
    struct bucket hour = bucket_at(zone, LEVEL_HOUR, cover->buckets[i].start_s);
    while (i > 0 && cover->buckets[i - 1].level <= LEVEL_HOUR &&
           cover->buckets[i - 1].start_s >= hour.start_s) {
        i--;
    }
    for (; i < cover->n && cover->buckets[i].start_s < hour.end_s; i++) {
        if (cover->buckets[i].level <= LEVEL_HOUR && page_bit(sum->present, i)) {
            return true;
        }
    }
    return false;
}

/* Did the name have its place all the while, so that nothing in @capped is of the name? */
static bool had_its_place(const struct capped_bucket *capped, const struct page_sum *sum,
    const struct cover *cover, const struct zone *zone)
{
    return sum->present != NULL && capped->bucket < cover->n &&
           cover->buckets[capped->bucket].level <= LEVEL_HOUR &&
           is_in_hour(sum, capped->bucket, cover, zone);
}

uint64_t capped_buckets_hide(const struct capped_buckets *buckets, const struct page_sum *sum,
    unsigned partition, const struct cover *cover, const struct zone *zone)
{
    uint64_t pv = 0;
    for (size_t i = 0; i < buckets->n; i++) {
        const struct capped_bucket *capped = &buckets->all[i];
        if (capped->partition == partition && !had_its_place(capped, sum, cover, zone)) {
            pv += capped->pv;
        }
    }
    return pv;
}

uint64_t capped_buckets_pv(const struct capped_buckets *buckets)
{
    uint64_t pv = 0;
    for (size_t i = 0; i < buckets->n; i++) {
        pv += buckets->all[i].pv;
    }
    return pv;
}

void capped_buckets_release(struct capped_buckets *buckets)
{
    free(buckets->all);
    *buckets = (struct capped_buckets){0};
}
