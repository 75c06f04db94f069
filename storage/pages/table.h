/* table.h - the page views of each page in a run of buckets, as bytes that can be kept.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * What is kept of a run for top pages (pages/memory.h): per page its name, its page views over all
 * of the run, and in which of the buckets it is, so that only those sketches need be read.  Written
 * and read by this process alone.
 */
#ifndef STORAGE_PAGES_TABLE_H
#define STORAGE_PAGES_TABLE_H

#include <stdint.h>

#include "storage/base/buffer.h"

struct page_entry {
    struct slice page; /* in the table; at most UINT16_MAX bytes */
    uint64_t pv;
    const uint8_t *present; /* bit i & 7 of byte i / 8: it is in bucket i of the run */
};

/* Bytes that the bits of @n_buckets take. */
static inline size_t page_bits_size(size_t n_buckets)
{
    return (n_buckets + 7) / 8;
}

/* Append an entry of a run of @n_buckets; see buffer.h for failures. */
void page_table_put(struct buffer *table, const struct page_entry *entry, size_t n_buckets);

/* The entry at *@at, which moves behind it; 0 is the first.  False: there is none. */
bool page_table_next(
    struct slice table, size_t n_buckets, size_t *at, struct page_entry *ret_entry);

#endif
