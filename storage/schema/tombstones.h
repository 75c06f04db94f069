/* tombstones.h - sites and pages that were deleted, as a partition's state names them: field
 * `deleted`.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * Each deletion has a line: its field (deletion_record.h), an instant in ms by Redis's clock, and
 * an id, with blanks between.  In the field blanks, line ends and '%' are written as "%20", "%0A",
 * "%25".  What arrived before the instant is not counted, whichever log it stands in and whenever
 * it is folded: of a deleted site no event counts, and of deleted pages no view counts for the
 * page.  All partitions get the same instant, before it has come, and an entry arrived at one time.
 * So of a request's events of a site all are counted or none, and a view is counted in all buckets
 * of its page or in none.  While the instant is 0 the deletion goes on, and nothing of the site or
 * of the pages is counted.
 */
#ifndef STORAGE_SCHEMA_TOMBSTONES_H
#define STORAGE_SCHEMA_TOMBSTONES_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/schema/key.h"

/* The text of the field, and the latest instant in it. */
struct tombstones {
    struct slice text;
    int64_t last_ms; /* INT64_MIN: there is none; INT64_MAX: a deletion goes on */
};

/* The tombstones in @text, the value of the field, which must outlive them; empty: no field. */
struct tombstones tombstones_of(struct slice text);

/* The instant before which nothing counts that the deletion @field is about: a site, or pages of
 * one.  INT64_MIN: there is no such deletion; INT64_MAX: the deletion goes on. */
int64_t tombstones_before(const struct tombstones *tombstones, struct slice field) MUST_CHECK;

/* Write the field of the first deletion that goes on to *ret.  False: there is none. */
bool tombstones_going_on(const struct tombstones *tombstones, struct key *ret) MUST_CHECK;

/* Is an event of @site that arrived at @arrival_ms not to be counted? */
bool tombstones_cover(
    const struct tombstones *tombstones, struct slice site, int64_t arrival_ms) MUST_CHECK;

/* Is an event of @site that arrived at @arrival_ms not to be counted for its @page? */
bool tombstones_cover_page(const struct tombstones *tombstones, struct slice site,
    struct slice page, int64_t arrival_ms) MUST_CHECK;

#endif
