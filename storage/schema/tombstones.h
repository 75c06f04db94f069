/* tombstones.h - sites that were deleted, as a partition's state names them: field `deleted`.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * A line a site: its name, an instant in ms by Redis's clock, and an id, with blanks between.
 * Events of the site that arrived before the instant are not counted, whichever log they stand in
 * and whenever they are folded.  All partitions get the same instant, before it has come, and an
 * entry arrived at one time.  So a request's events of a site are counted all, or none.  While the
 * instant is 0 the deletion goes on, and no event of the site is counted.
 */
#ifndef STORAGE_SCHEMA_TOMBSTONES_H
#define STORAGE_SCHEMA_TOMBSTONES_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* The text of the field, and the latest instant in it. */
struct tombstones {
    struct slice text;
    int64_t last_ms; /* INT64_MIN: there is none; INT64_MAX: a deletion goes on */
};

/* @text: of the field, which must live as long; empty: the field is not there. */
struct tombstones tombstones_of(struct slice text);

/* The instant before which no event of @site counts; INT64_MIN: all count; INT64_MAX: none does. */
int64_t tombstones_before(const struct tombstones *tombstones, struct slice site) MUST_CHECK;

/* The first site whose deletion goes on; empty: there is none. */
struct slice tombstones_going_on(const struct tombstones *tombstones) MUST_CHECK;

/* Is an event of @site that arrived at @arrival_ms not to be counted? */
bool tombstones_cover(
    const struct tombstones *tombstones, struct slice site, int64_t arrival_ms) MUST_CHECK;

#endif
