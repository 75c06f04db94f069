/* key.h - the schema: every key that tallyd has in Redis is named here and nowhere else.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 *   {p} = the partition's hash tag; a bucket is its level's letter m h d M and its start in UTC,
 *   YYYYMMDDhhmm.  <page> stands last and is taken as given; the page of no bytes is the whole
 * site. A site has no ':', so no site, and no page, can make a key read as another one, and the
 * hash tag is the first thing with braces in it.
 *
 *   t:{p}:uv:<site>:<bucket>:<page>  HLL    visitors (8-byte keyed hashes)     partition of (site,
 * page) t:{p}:ip:<site>:<bucket>:<page>  HLL    addresses (8-byte keyed hashes)    partition of
 * (site, page) t:{p}:pv:<site>:<bucket>         m: hash, h d M: zset;  page -> page views partition
 * of (site, page) t:{p}:vv:<site>:<bucket>         m: hash, h d M: zset;  page -> visits partition
 * of (site, visitor) t:{p}:visit:<site>:<slot>        hash   visitor (16 bytes) -> last event time
 * and arrival, 11 digits each; slot = arrival time / visit timeout; expires t:{p}:open set
 * <site>:<bucket> that a rollup has still to visit t:{p}:sites                      set    sites
 * seen t:{p}:rolled                     hash   cfg, st, pass, cur, ftok, ver, kept, zones
 * (see rollup_state.h, settings.h, site_zones.h) t:{p}:once:<writer>              string last
 * sequence number applied; expires t:{0}:meta                       string schema version and
 * number of partitions t:{0}:secret                     string 32 random bytes: key of the
 * visitors' and addresses' hashes t:{0}:lock, t:{0}:fence          string the rollup's leader, and
 * its fencing tokens t:{0}:probe                      string written by /readyz
 *
 * ({0} here: the tag of partition 0.)
 */
#ifndef STORAGE_KEY_H
#define STORAGE_KEY_H

#include "storage/bucket.h"
#include "storage/event.h"
#include "storage/partition.h"

#define KEY_SCHEMA 1

/* What a bucket's key counts. */
enum key_kind { KEY_UV, KEY_IP, KEY_PV, KEY_VV };

/* Bytes that any key fits in. */
#define KEY_MAX (64 + EVENT_SITE_MAX + EVENT_PAGE_MAX)

/* A key under construction; p stays valid until the next key_* call on it. */
struct key {
    char p[KEY_MAX];
    size_t n;
};

/* t:{tag}:<name>, or t:{tag}:<name><suffix>. */
void key_fixed(struct key *key, const char *tag, const char *name, struct slice suffix);

/* A bucket's key.  @page is ignored for KEY_PV and KEY_VV, whose pages are fields. */
void key_bucket(struct key *key, const char *tag, enum key_kind kind, struct slice site,
    struct bucket bucket, struct slice page);

/* t:{tag}:visit:<site>: - the slot's number follows. */
void key_visit_prefix(struct key *key, const char *tag, struct slice site);

/* A member of the open set: <site>:<bucket>, and back; false if it is none.  The bucket is read in
 * the site's zone: so the site comes first. */
void key_open_member(struct key *member, struct slice site, struct bucket bucket);
bool key_open_site(struct slice member, struct slice *ret_site);
bool key_open_parse(struct slice member, const struct zone *zone, struct slice *ret_site,
    struct bucket *ret_bucket);

#endif
