/* site_zones.h - the reporting zones of sites: where each site's hours, days and months are cut.
 *
 * Layer: storage, pure.  Thread-safe once made.
 *
 * A site that is not named is cut in UTC.  The zones in use, UTC among them, are those at whose
 * bucket ends the watermarks of every partition stop: rolled up is what ends at a watermark, in
 * whichever zone.  So all processes must have the same: the names are kept in Redis beside the
 * state of each partition, and a digest of them is in what every script compares (settings.h).
 */
#ifndef STORAGE_TIME_SITE_ZONES_H
#define STORAGE_TIME_SITE_ZONES_H

#include "storage/base/slice.h"
#include "storage/time/bucket.h"

struct site_zone {
    char *site; /* owned */
    const struct zone *zone;
};

struct site_zones {
    struct site_zone *entries; /* in order of the sites' names; none in UTC */
    size_t n, capacity;
    const struct zone **zones; /* in use, each once; UTC first */
    size_t n_zones, zones_capacity;
    char *text; /* "shop=Europe/Berlin www=Asia/Kathmandu": the entries; "" if there are none */
};

/* Begin with none.  False: no memory. */
bool site_zones_init(struct site_zones *zones);
void site_zones_release(struct site_zones *zones);

/* Add a site, which is not there yet.  False: no memory. */
bool site_zones_add(struct site_zones *zones, struct slice site, const struct zone *zone);

/* The zone of @site. */
const struct zone *site_zones_get(const struct site_zones *zones, struct slice site);

/* The first end of a bucket of @level behind @at_s, in any zone in use. */
int64_t site_zones_next_end(const struct site_zones *zones, enum level level, int64_t at_s);

/* The latest beginning of a bucket of @level that holds @at_s, in any zone in use. */
int64_t site_zones_start(const struct site_zones *zones, enum level level, int64_t at_s);

/* 0 for none, else a digest of the text. */
uint64_t site_zones_digest(const struct site_zones *zones);

/* Call @differs for each site that has another zone in @text (as of another process; NULL-safe if
 * empty) than in @zones, with both names.  False: @text is none of ours, or @differs said false. */
bool site_zones_compare(const struct site_zones *zones, struct slice text,
    bool (*differs)(void *data, struct slice site, struct slice theirs, struct slice ours),
    void *data);

#endif
