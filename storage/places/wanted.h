/* wanted.h - what places are asked: a name that is to be counted, and as what; and what is known
 * of its partition.
 *
 * Layer: storage, pure: plain values.
 */
#ifndef STORAGE_PLACES_WANTED_H
#define STORAGE_PLACES_WANTED_H

#include "storage/schema/hashed_event.h"
#include "storage/time/closed.h"

/* What a name is counted as. */
enum places_table {
    PLACES_COUNTS, /* views and named events */
    PLACES_STARTS, /* visits that begin */
};

/* A name that is to be counted. */
struct place_wanted {
    const struct row *row;   /* has the site, the zone and the time */
    struct slice name;       /* see job/counted_name.h */
    uint64_t hash;           /* a hash of the name, by any function */
    enum places_table table; /* what the name is counted as */
};

/* Which hours of the partition are closed. */
struct places_view {
    bool known; /* false: no hour is closed, as far as is known */
    struct rollup_state state;
    struct retention retention;
    int64_t now_ms;      /* Redis's clock */
    bool reads_counters; /* the counters of closed hours are read before the decision: places.h */
};

#endif
