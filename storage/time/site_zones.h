/* site_zones.h - in which time zone each site's hours, days and months are cut.
 *
 * Layer: storage, pure.  Thread-safe once made: from then on it is only read.
 *
 * The configuration names sites with a zone of their own.  A site that it does not name is cut in
 * UTC.  The zones in use are those of the sites and UTC.
 *
 * All processes must have the same list.  A rollup completes buckets in all zones in use, and the
 * instants that say how far it came stop at the bucket ends of each (closed.h).  So the list is
 * kept in Redis as text beside the state of each partition.  A digest of the list is part of the
 * settings that every script compares (schema/settings.h).
 */
#ifndef STORAGE_TIME_SITE_ZONES_H
#define STORAGE_TIME_SITE_ZONES_H

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/time/bucket.h"

struct site_zone {
    char *site; /* owned */
    const struct zone *zone;
};

/* The list.  The zones belong to another owner, and must outlive the list. */
struct site_zones {
    struct site_zone *entries; /* owned; in order of the sites' names; no entry is in UTC */
    size_t n, capacity;
    const struct zone **zones; /* owned array of the zones in use, each once; UTC first */
    size_t n_zones, zones_capacity;
    char *text; /* owned: the entries, "shop=Europe/Berlin www=Asia/Kathmandu"; "" if none */
};

/* Begin with no entry.  False: out of memory; the caller releases @zones all the same. */
bool site_zones_init(struct site_zones *zones) MUST_CHECK;
void site_zones_release(struct site_zones *zones);

/* Add a site that has no entry yet.  Copies the name.  False: out of memory, and @zones can only be
 * released. */
bool site_zones_add(
    struct site_zones *zones, struct slice site, const struct zone *zone) MUST_CHECK;

/* The zone of @site, never NULL. */
const struct zone *site_zones_get(const struct site_zones *zones, struct slice site);

/* The first end of a bucket of @level behind @at_s, in any zone in use. */
int64_t site_zones_next_end(const struct site_zones *zones, enum level level, int64_t at_s);

/* The latest beginning of a bucket of @level that holds @at_s, in any zone in use. */
int64_t site_zones_start(const struct site_zones *zones, enum level level, int64_t at_s);

/* A digest of the text.  0: there are no entries. */
uint64_t site_zones_digest(const struct site_zones *zones);

/* Compare with @text, the list of another process.  Calls @differs for each site whose zone is
 * another one there, with the names of both zones.  False: @text is not such a list, or @differs
 * has returned false. */
bool site_zones_compare(const struct site_zones *zones, struct slice text,
    bool (*differs)(void *data, struct slice site, struct slice theirs, struct slice ours),
    void *data) MUST_CHECK;

#endif
