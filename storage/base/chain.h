/* chain.h - items of one array as several lists.
 *
 * Layer: storage, pure.  Not thread-safe.
 *
 * Each item is in one list.  Its member `uint32_t next` is the number of the item behind it.  So
 * the array may move, and no list needs freeing.  A list is read like this:
 *
 *     for (uint32_t i = list->first; i != INDEX_NONE; i = items[i].next)
 */
#ifndef STORAGE_BASE_CHAIN_H
#define STORAGE_BASE_CHAIN_H

#include "storage/base/index.h"

struct chain {
    uint32_t first, last; /* numbers of items; INDEX_NONE: the list is empty */
    uint32_t n;
};

#define CHAIN_EMPTY ((struct chain){.first = INDEX_NONE, .last = INDEX_NONE})

/* Append items[number] to *chain. */
#define CHAIN_APPEND(chain, items, number)                                                         \
    do {                                                                                           \
        (items)[number].next = INDEX_NONE;                                                         \
        if ((chain)->n++ == 0) {                                                                   \
            (chain)->first = (number);                                                             \
        } else {                                                                                   \
            (items)[(chain)->last].next = (number);                                                \
        }                                                                                          \
        (chain)->last = (number);                                                                  \
    } while (false)

#endif
