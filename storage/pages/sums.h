/* sums.h - page views of pages, summed up over buckets.
 *
 * Layer: storage, pure.  Belongs to one thread.
 *
 * Each page of a site has a sum, which is found by the page's name, and a bit for each bucket that
 * the page is in.  Buckets are added one after the other.
 */
#ifndef STORAGE_PAGES_SUMS_H
#define STORAGE_PAGES_SUMS_H

#include "storage/base/arena.h"
#include "storage/base/index.h"
#include "storage/base/slice.h"

struct page_sum {
    struct slice page; /* in the arena */
    uint64_t pv;       /* 0: nothing was added to the page */
    uint64_t last_pv;  /* the views that turn `last` has added: see page_sums_take() */
    uint32_t last;
    uint8_t
        *present; /* in the arena: bit i & 7 of byte i / 8: the page is in bucket i, as the owner
                         numbers buckets; NULL: there is no room for bits yet */
};

/* A page that a scan of a bucket has brought. */
struct staged {
    uint32_t sum; /* the number of its sum */
    uint64_t pv;
};

/* Zeroed: no page. */
struct page_sums {
    struct arena arena;
    struct index index;
    struct page_sum *all; /* owned */
    size_t n, capacity;
};

/* Find a page's sum, or with @add make one.  @site is the same in all calls.  *ret is the number of
 * the sum; INDEX_NONE: there is none.  False: no memory. */
bool page_sums_find(
    struct page_sums *sums, struct slice site, struct slice page, bool add, uint32_t *ret);

/* Make room for the bits of sum @i, of @n_buckets.  False: no memory. */
bool page_sums_reserve_present(struct page_sums *sums, uint32_t i, size_t n_buckets);

/* Add to sum @i the @pv page views that its page has in @bucket; the sum has room for the bits.
 * @turn differs for each bucket that is added, and is not 0.  If a page comes twice in one turn,
 * the greater of the two values counts. */
void page_sums_take(struct page_sums *sums, uint32_t i, uint32_t turn, size_t bucket, uint64_t pv);

/* Forget all pages; clear keeps memory, release frees it. */
void page_sums_clear(struct page_sums *sums);
void page_sums_release(struct page_sums *sums);

#endif
