#include "storage/pages/table.h"

#include <string.h>

/* An entry is: page views, length of the name, bits, name.  The head is the first two. */
#define HEAD (sizeof(uint64_t) + sizeof(uint16_t))

void page_table_put(struct buffer *table, const struct page_entry *entry, size_t n_buckets)
{
    uint16_t length = (uint16_t)entry->page.n;
    size_t bits = page_bits_size(n_buckets);
    char *to = buffer_grow(table, HEAD + bits + length);
    if (to == NULL) {
        return;
    }
    memcpy(to, &entry->pv, sizeof(entry->pv));
    memcpy(to + sizeof(entry->pv), &length, sizeof(length));
    memcpy(to + HEAD, entry->present, bits);
    memcpy(to + HEAD + bits, entry->page.p, length);
}

bool page_table_next(struct slice table, size_t n_buckets, size_t *at, struct page_entry *ret_entry)
{
    size_t bits = page_bits_size(n_buckets);
    uint16_t length;
    if (table.n - *at < HEAD + bits) {
        return false;
    }
    const char *from = table.p + *at;
    memcpy(&ret_entry->pv, from, sizeof(ret_entry->pv));
    memcpy(&length, from + sizeof(ret_entry->pv), sizeof(length));
    ret_entry->present = (const uint8_t *)from + HEAD;
    ret_entry->page = (struct slice){from + HEAD + bits, length};
    *at += HEAD + bits + length;
    return true;
}
