/* wanted.h - a name that is to be counted, and as what.
 *
 * Layer: storage, pure: plain values.
 */
#ifndef STORAGE_PLACES_WANTED_H
#define STORAGE_PLACES_WANTED_H

#include "storage/schema/hashed_event.h"

/* What a name is counted as. */
enum places_table { PLACES_COUNTS, PLACES_STARTS };

/* A name that is to be counted. */
struct place_wanted {
    const struct row *row;   /* its site, zone and time */
    struct slice name;       /* see job/counted_name.h */
    uint64_t hash;           /* of it; any */
    enum places_table table; /* views and events, or visits that begin */
};

#endif
