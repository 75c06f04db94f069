/* table.h - the page views of each page in a run of buckets, as bytes that can be kept.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * For top pages a table is what is remembered of a run (pages/memory.h).  A page has one entry: its
 * name, its page views over all of the run, and in which buckets of the run the page is, so that
 * only the sketches of those need be read.  What a cap put together has an entry for each bucket,
 * so that it is known how much lies in which bucket.  Tables never leave the process.
 */
#ifndef STORAGE_PAGES_TABLE_H
#define STORAGE_PAGES_TABLE_H

#include <stdint.h>

#include "storage/base/buffer.h"

struct page_entry {
    struct slice page; /* in the table; at most UINT16_MAX bytes */
    uint64_t pv;
    const uint8_t *present; /* bit i & 7 of byte i / 8: the page is in bucket i of the run */
};

/* How many bytes the bits of @n_buckets take. */
static inline size_t page_bits_size(size_t n_buckets)
{
    return (n_buckets + 7) / 8;
}

/* Is bit @i of such bits set? */
static inline bool page_bit(const uint8_t *bits, size_t i)
{
    return (bits[i / 8] >> (i & 7) & 1) != 0;
}

/* Append an entry of a run of @n_buckets.  A failure shows in table->failed. */
void page_table_put(struct buffer *table, const struct page_entry *entry, size_t n_buckets);

/* Take the entry at byte *at, which is 0 at first, and move *at behind it.  False: there is
 * none. */
bool page_table_next(
    struct slice table, size_t n_buckets, size_t *at, struct page_entry *ret_entry);

#endif
