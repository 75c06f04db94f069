/* filter_groups.h - the bits of many items, put in order by the strings that they lie in.
 *
 * Layer: storage, pure.  One owner; some 40 KB.
 * A command takes bits of one string only, and costs more than they do: so the bits of all items
 * that a string has are asked for, or set, at once.  Within a string they are in the order of the
 * items; those of an item have one behind the other.
 */
#ifndef STORAGE_FILTER_GROUPS_H
#define STORAGE_FILTER_GROUPS_H

#include "storage/bloom.h"

#define GROUPS_BITS_MAX    2000
#define GROUPS_STRINGS_MAX 256

/* A bit, as Redis counts, of an item, by its number among those that were added. */
struct group_bit {
    uint32_t bit;
    uint16_t item, string;
};

struct filter_groups {
    const struct bloom_layer *layer;
    size_t n_items, n_bits, n_strings;
    unsigned run; /* an item's bits in a string: all, or 1 where a segment has several strings */
    uint64_t strings[GROUPS_STRINGS_MAX];   /* their numbers in the layer, by first use */
    size_t first[GROUPS_STRINGS_MAX + 1];   /* of their bits, in ordered */
    struct group_bit bits[GROUPS_BITS_MAX]; /* as they were added */
    struct group_bit ordered[GROUPS_BITS_MAX];
};

/* Begin with none.  @layer is the caller's. */
void filter_groups_begin(struct filter_groups *groups, const struct bloom_layer *layer);

/* False: it does not fit any more; nothing was done.  The first one fits. */
bool filter_groups_add(struct filter_groups *groups, struct bloom_hash hash);

/* All are added: `first` and `ordered` are filled. */
void filter_groups_end(struct filter_groups *groups);

/* A group: bits [from, to) of `ordered`, whole runs, are of the string strings[string]. */
struct group {
    size_t string, from, to;
};

/* The next one behind @group, {0} at first; of at most @most bits, but for one run.  False: there
 * is none. */
bool filter_groups_next(const struct filter_groups *groups, size_t most, struct group *group);

#endif
