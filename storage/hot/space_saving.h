/* space_saving.h - which names come most often in a stream, with a bounded error, in constant
 * memory.
 *
 * Layer: storage, pure (no clock).  One owner.
 * Source: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k
 * elements in data streams", ICDT 2005: a name that has no counter takes that of the least, its
 * count included; so a count is never too low, and too high by at most what was taken over.
 *
 * The counters lie in sets of eight (a name's hash says which), and the least is that of its set:
 * an event costs a look at 12 words, no list and no heap.  Of n events, a set sees about n / 64, so
 * a name is taken for at most n / 512 too many on average; what it is for each is known exactly.
 *
 * A name is copied when its counter is free or counts it for the second time, so names that come
 * once cost nothing once the counters are taken.  Names whose 64-bit hashes are equal are counted
 * as one.
 */
#ifndef STORAGE_HOT_SPACE_SAVING_H
#define STORAGE_HOT_SPACE_SAVING_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define SPACE_SAVING_SETS 64
#define SPACE_SAVING_WAYS 8

struct space_saving_name {
    uint16_t site_n, page_n;
    char text[]; /* site, then page */
};

struct space_saving_set {
    uint64_t hash[SPACE_SAVING_WAYS];
    uint32_t count[SPACE_SAVING_WAYS];                 /* 0: free */
    uint32_t over[SPACE_SAVING_WAYS];                  /* of the count, may be others' */
    struct space_saving_name *name[SPACE_SAVING_WAYS]; /* owned; NULL: not copied */
};

/* Zeroed it is empty. */
struct space_saving {
    struct space_saving_set sets[SPACE_SAVING_SETS];
    size_t name_bytes; /* names are copied up to SPACE_SAVING_NAMES */
};
#define SPACE_SAVING_NAMES (128 * 1024)

/* One more event of a page; @hash is page_hash(). */
void space_saving_add(struct space_saving *s, uint64_t hash, struct slice site, struct slice page);

/* The most that a page may have come without having a counter. */
uint32_t space_saving_floor(const struct space_saving *s);

/* Free what it owns; empty again. */
void space_saving_clear(struct space_saving *s);

#endif
