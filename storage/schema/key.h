/* key.h - the schema: every key that tallyd has in Redis is named here and nowhere else.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * {p} is the partition's hash tag, {0} that of partition 0.  A bucket is its level's letter m h d M
 * and its start in UTC, YYYYMMDDhhmm.  <page> stands last and is taken as given; the page of no
 * bytes is the whole site.  A site has no ':', so no site, and no page, can make a key read as
 * another one, and the hash tag is the first thing with braces in it.
 *
 * Counts, in the partition of (site, page):
 * - t:{p}:uv:<site>:<bucket>:<page> HLL, visitors (8-byte keyed hashes)
 * - t:{p}:ip:<site>:<bucket>:<page> HLL, addresses (8-byte keyed hashes)
 * - t:{p}:pv:<site>:<bucket> m: hash, h d M: zset; page -> page views
 *
 * Visits, in the partition of (site, visitor):
 * - t:{p}:vv:<site>:<bucket> m: hash, h d M: zset; page -> visits
 * - t:{p}:visit:<site>:<slot> hash, visitor (16 bytes) -> last event time and arrival, 11 digits
 *   each; slot = arrival time / visit timeout; expires
 *
 * Of each partition:
 * - t:{p}:open set, <site>:<bucket> that a rollup has still to visit
 * - t:{p}:sites set, sites seen
 * - t:{p}:rolled hash, cfg, st, pass, cur, ftok, ver, kept, zones (see time/closed.h, settings.h,
 *   site_zones.h)
 * - t:{p}:once:<writer> string, last sequence number applied; expires
 *
 * Requests with an Idempotency-Key; <claim> is 32 hexadecimal digits, the digest of the key and
 * whose it is, so no user text:
 * - t:{p}:claim:<claim> string, I (in flight) or D (done), gen (13 digits), end of the lease (13),
 *   owner (16 bytes), digest of the body (16), the answer; expires; partition of <claim>
 * - t:{p}:once:claim:<claim> string, a keyed request's tasks applied here (see unit.h): gen (13
 *   digits), their number (7), digest of the body (16 bytes); expires; each partition it touches
 *
 * Limits, in the partition of the key:
 * - t:{p}:rl:<algorithm>:<policy>:<key> funnel: string, sliding: zset; see lua/; expires (a policy
 *   has no ':'; that of no policy is empty)
 * - t:{p}:rl:ingest:<kind>:<who> string, what the ingestion guard has taken; expires
 *
 * Of all:
 * - t:{0}:meta string, schema version and number of partitions
 * - t:{0}:secret string, 32 random bytes: key of the visitors' and addresses' hashes
 * - t:{0}:lock, t:{0}:fence string, the rollup's leader, and its fencing tokens
 * - t:{0}:wish string, a pass that is asked for
 * - t:{0}:lock:<hash of the secret> string, the lock, on the servers of --lock-redis
 * - t:{0}:probe string, written by /readyz
 * - t:{0}:sets:<site> hash, page set's name -> its pages, '\n' behind each (no page has one in it)
 *
 * Bloom filters:
 * - t:{p}:bf:<site>:<name> hash, a named filter (see filter/shape.h)
 * - t:{p}:bfs:<site>:<name> hash, a shard of it
 * - t:{p}:bfl:<site>:<name>:<id>:<layer>.<segment> string, a shard's bits
 * - t:{p}:seen:<site>:<bucket>:<what> who saw what (see seen/layout.h); partition of (site,
 *   visitor); expires
 *
 * Activity (all in the partition of (site, visitor); an action has no more than [a-z0-9._:-]):
 * - t:{p}:uid:<site> hash, user -> dense index; field "" is the next index (no user is empty)
 * - t:{p}:ids:<site>:<block> list, the users of 128 indices in order; "" is one who was forgotten
 * - t:{p}:act:<site>:<action>:<YYYYMMDD> bitmap of indices: who did it on that day of the site's
 *   zone.  The day stands last, the site has no ':': none reads as another
 * - t:{p}:acts zset, <site>:<action>:<YYYYMMDD> of each such bitmap -> days since 1970-01-01
 * - t:{p}:gone set, <site>:<index> of users forgotten whose bits are not all cleared yet
 * - t:{p}:rolled, two fields more: users, the generation of its users ("-" where there is none),
 *   new whenever one is forgotten; swept, the first day whose bitmaps were not taken away
 */
#ifndef STORAGE_SCHEMA_KEY_H
#define STORAGE_SCHEMA_KEY_H

#include "storage/job/claim.h"
#include "storage/job/event.h"
#include "storage/schema/partition.h"
#include "storage/job/job.h"
#include "storage/time/bucket.h"

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

/* t:{tag}:uid:<site>, and t:{tag}:ids:<site>: - the block's number follows. */
void key_user_index(struct key *key, const char *tag, struct slice site);
void key_user_ids(struct key *key, const char *tag, struct slice site);
#define KEY_IDS_BLOCK 128 /* users in a block */

/* The bitmap of @day (days since 1970-01-01, until 9999), and t:{tag}:act: - a member of `acts`
 * follows. */
void key_activity(
    struct key *key, const char *tag, struct slice site, struct slice action, int64_t day);
void key_activity_prefix(struct key *key, const char *tag);

/* Is this member of `acts` (or of `gone`) one of @site?  *ret_rest is what follows the site. */
bool key_member_of(struct slice member, struct slice site, struct slice *ret_rest);
/* The partition of a claim's record. */
unsigned claim_partition(const struct partitions *partitions, const struct claim_digest *claim);

/* t:{tag}:claim:<claim>, and t:{tag}:once:claim:<claim>. */
void key_claim(struct key *key, const char *tag, const struct claim_digest *claim);
void key_unit(struct key *key, const char *tag, const struct claim_digest *claim);

/* t:{tag}:sets:<site>. */
void key_page_sets(struct key *key, const char *tag, struct slice site);

/* t:{tag}:visit:<site>: - the slot's number follows. */
void key_visit_prefix(struct key *key, const char *tag, struct slice site);

/* A limiter's key, in the partition of job->key. */
void key_limit(struct key *key, const struct partitions *partitions, const struct limit_job *job);
/* A named filter's hash, a shard's, and the bits of a segment of a shard's layer. */
void key_filter(struct key *key, const char *tag, struct slice site, struct slice name);
void key_filter_shard(struct key *key, const char *tag, struct slice site, struct slice name);
void key_filter_bits(struct key *key, const char *tag, struct slice site, struct slice name,
    uint64_t id, unsigned layer, uint64_t segment);

/* t:{tag}:seen:<site>:<month>:<what> */
void key_seen(
    struct key *key, const char *tag, struct slice site, struct bucket month, const char *what);
/* The bits of a segment of a month's layer. */
void key_seen_bits(struct key *key, const char *tag, struct slice site, struct bucket month,
    unsigned layer, uint64_t segment);

/* A member of the open set: <site>:<bucket>, and back; false if it is none.  The bucket is read in
 * the site's zone: so the site comes first. */
void key_open_member(struct key *member, struct slice site, struct bucket bucket);
bool key_open_site(struct slice member, struct slice *ret_site);
bool key_open_parse(struct slice member, const struct zone *zone, struct slice *ret_site,
    struct bucket *ret_bucket);

#endif
