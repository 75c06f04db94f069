/* counted_for.h - a name that a row is counted for.
 *
 * Layer: storage, pure: plain values.
 */
#ifndef STORAGE_PLACES_COUNTED_FOR_H
#define STORAGE_PLACES_COUNTED_FOR_H

#include "storage/schema/hashed_event.h"

struct counted_for {
    struct slice name; /* see job/counted_name.h; empty: the whole site */
    uint64_t hash;     /* of it; any */
    bool visitors;     /* with its visitors.. */
    bool addresses;    /* ..and addresses; of visits that begin there are neither */
};

/* The page, or the named event, of @row; and the whole site. */
static inline struct counted_for counted_for_page(const struct row *row)
{
    return (struct counted_for){row->page, row->page_hash, true, true};
}

static inline struct counted_for counted_for_site(const struct row *row)
{
    return (struct counted_for){{NULL, 0}, row->site->hash, true, true};
}

#endif
