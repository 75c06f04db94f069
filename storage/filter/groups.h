/* groups.h - items of a request, put in order by the strings of a Bloom filter that they lie in.
 *
 * Layer: storage, pure.  One owner; some 8 KB.
 *
 * All bits of an item lie in one string.  A command is about one string, and costs Redis more than
 * the bits of an item do, so several items of a string are looked for with one command.  Within a
 * string the items are in the order in which they were added.
 */
#ifndef STORAGE_FILTER_GROUPS_H
#define STORAGE_FILTER_GROUPS_H

#include "storage/base/compiler.h"
#include "storage/job/filter_job.h"

#define GROUPS_STRINGS_MAX 256

struct filter_groups {
    size_t n_items, n_strings;
    uint64_t segments[GROUPS_STRINGS_MAX]; /* each string's number in the layer, by first use */
    uint16_t string[FILTER_ITEMS_MAX];     /* of each item: where it is in segments */
    uint16_t ordered[FILTER_ITEMS_MAX];    /* items by string, by their number as added */
    size_t first[GROUPS_STRINGS_MAX + 1];  /* of a string's items, in ordered */
};

/* Begin with none. */
void filter_groups_begin(struct filter_groups *groups);

/* One more item, of the string @segment.  False: it does not fit any more, and nothing was done.
 * The first item always fits. */
bool filter_groups_add(struct filter_groups *groups, uint64_t segment);

/* All items are added: fill `first` and `ordered`. */
void filter_groups_end(struct filter_groups *groups);

/* A group: items [from, to) of `ordered` are of the string segments[string]. */
struct group {
    size_t string, from, to;
};

/* Move @group, {0} at first, to the next one: of at least 1 item and at most @most.  False: there
 * is none. */
bool filter_groups_next(
    const struct filter_groups *groups, size_t most, struct group *group) MUST_CHECK;

#endif
