/* bits.h - reads the bits of pages in the Bloom filters of a user's months.
 *
 * Layer: storage.  Belongs to a reader thread: the question's.
 *
 * All pages whose bits lie in one string are asked for by one BITFIELD_RO.  Of many pages only the
 * first BITS_FIRST bits are read at first: of a page that is not in the filter, which is the usual
 * case, one of these is unset in 7 of 8 cases at least, and the other bits need not be read.  A
 * string with the bits of many pages, 128 KiB at most, is read whole, and remembered until the
 * filter changes (read/cache.h).
 */
#ifndef STORAGE_SEEN_BITS_H
#define STORAGE_SEEN_BITS_H

#include "storage/base/slice.h"
#include "storage/read/cache.h"
#include "storage/read/pipeline.h"
#include "storage/seen/filter.h"
#include "storage/seen/wanted.h"

/* Where bits are read. */
struct seen_bits {
    unsigned partition; /* the user's partition */
    const char *tag;    /* the tag of that partition */
    struct slice site;
    const struct bucket *months; /* n_months of them */
    const struct seen_filter *filters;
    unsigned n_months;
    struct cache *cache; /* of strings that were read whole; NULL: none */
    bool any;            /* the search may end with the first page that is found */
};

/* Find the pages of @wanted that are in a filter; pages that were found before are not asked for.
 * False: after a fault of the pipeline. */
bool seen_bits_find(
    const struct seen_bits *bits, struct pipeline *pipe, struct wanted *wanted) MUST_CHECK;

#endif
