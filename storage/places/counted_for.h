/* counted_for.h - a name that a row is counted for.
 *
 * Layer: storage, pure: plain values.
 */
#ifndef STORAGE_PLACES_COUNTED_FOR_H
#define STORAGE_PLACES_COUNTED_FOR_H

#include "storage/schema/hashed_event.h"

struct counted_for {
    struct slice name; /* see job/counted_name.h; empty: the whole site */
    uint64_t hash;     /* a hash of the name, by any function */
    bool visitors;     /* the row's visitor is counted with the name; visits have none */
    bool addresses;    /* the row's address is counted with the name; visits have none */
};

/* The page, or the named event, of @row. */
static inline struct counted_for counted_for_page(const struct row *row)
{
    return (struct counted_for){row->page, row->page_hash, true, true};
}

/* The whole site of @row. */
static inline struct counted_for counted_for_site(const struct row *row)
{
    return (struct counted_for){{NULL, 0}, row->site->hash, true, true};
}

#endif
