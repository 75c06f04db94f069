/* sums.h - page views of pages, summed up over buckets as they come.
 *
 * Layer: storage, pure.  One owner.
 */
#ifndef STORAGE_PAGES_SUMS_H
#define STORAGE_PAGES_SUMS_H

#include "storage/base/arena.h"
#include "storage/base/index.h"
#include "storage/base/slice.h"

struct page_sum {
    struct slice page; /* in the arena */
    uint64_t pv;       /* 0: only asked for */
    uint64_t last_pv;  /* what it had in bucket `last`, counted from 1 over all buckets */
    uint32_t last;
    uint8_t *present; /* in the arena: bit i & 7 of byte i / 8: it is in bucket i (of those that its
                         owner numbers); NULL: in none so far */
};

/* Zeroed it is empty. */
struct page_sums {
    struct arena arena;
    struct index index;
    struct page_sum *all; /* owned */
    size_t n, capacity;
};

/* The sum of a page of a site (always the same one): *ret is its number, INDEX_NONE if there is
 * none and it is not to be added.  False: no memory. */
bool page_sums_find(
    struct page_sums *sums, struct slice site, struct slice page, bool add, uint32_t *ret);

/* Room for the buckets that sum @i is in, of @n_buckets.  False: no memory. */
bool page_sums_reserve_present(struct page_sums *sums, uint32_t i, size_t n_buckets);

/* Sum @i has @pv in bucket @bucket, which nothing has come of yet but by this @turn (a number of
 * its own for each bucket, not 0).  A page that comes twice has the greater of its values. */
void page_sums_take(struct page_sums *sums, uint32_t i, uint32_t turn, size_t bucket, uint64_t pv);

void page_sums_clear(struct page_sums *sums);
void page_sums_release(struct page_sums *sums);

#endif
