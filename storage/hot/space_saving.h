/* space_saving.h - which names come most often in a stream, in constant memory.
 *
 * Layer: storage, pure: no clock.  Not thread-safe: one owner.
 *
 * There are 512 counters, and many more names.  A name that has no counter takes over the least
 * one, its count included.  So a count is never too low, and it is too high by at most what was
 * taken over.  That amount is known for each counter.
 *
 * The counters lie in sets of eight.  The hash of a name says which set is the name's, and the
 * least counter is the least of its set.  So an event costs a look at 12 words, without a list or a
 * heap.  Of n events a set sees about n / 64, so a count is too high by n / 512 at most on average.
 *
 * A name is copied once its counter is sure to be its own: if the counter was free, or when it has
 * counted the name four times.  So names that come once cost nothing when all counters are taken.
 * Two names with the same 64-bit hash are counted as one.
 *
 * Source: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k
 * elements in data streams", ICDT 2005.
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
    uint32_t count[SPACE_SAVING_WAYS]; /* 0: the counter is free */
    uint32_t over[SPACE_SAVING_WAYS];  /* the part of count taken over from others */
    struct space_saving_name *name[SPACE_SAVING_WAYS]; /* owned; NULL: not copied */
};

/* The counters.  Zeroed: all are free. */
struct space_saving {
    struct space_saving_set sets[SPACE_SAVING_SETS];
    size_t name_bytes; /* bytes of all names; SPACE_SAVING_NAMES at most */
};
#define SPACE_SAVING_NAMES (128 * 1024)

/* Count an event of a page.  @hash is page_hash() of both names. */
void space_saving_add(struct space_saving *s, uint64_t hash, struct slice site, struct slice page);

/* The most events that a page without a counter can have had. */
uint32_t space_saving_floor(const struct space_saving *s);

/* Free all names and make all counters free. */
void space_saving_clear(struct space_saving *s);

#endif
