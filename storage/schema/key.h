/* key.h - the schema: every key that tallyd has in Redis is named here and nowhere else.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * All data is cut into partitions (partition.h), and a key begins with t:{p}:, where {p} is the
 * hash tag of its partition.  {0} is the tag of partition 0.
 *
 *     <site>     a site's name.  It has no ':', so no site can make a key read as another key
 *     <page>     a page as it was given, any bytes, or what no page can be: a named event, a value
 *                of a dimension, a section, what a cap put together (job/counted_name.h).  It
 *                stands last.  No bytes: the whole site
 *     <bucket>   a letter for the level (m minute, h hour, d day, M month) and its beginning in
 *                UTC, YYYYMMDDhhmm
 *     <action>   a name of [a-z0-9._:-]
 *     "kept"     the key expires at the end of its level's keep time; it gets its expiry when the
 *                bucket of the next coarser level is complete (time/closed.h)
 *
 * Counts, in the partition of (site, page); of values and sections in that of their site:
 *
 *     t:{p}:uv:<site>:<bucket>:<page>   HyperLogLog   visitors, 8-byte keyed hashes; kept
 *     t:{p}:ip:<site>:<bucket>:<page>   HyperLogLog   addresses, 8-byte keyed hashes; kept
 *     t:{p}:pv:<site>:<bucket>          hash (m)      page -> page views; kept
 *                                       zset (h d M)
 *
 * Visits, in the partition of (site, visitor):
 *
 *     t:{p}:vv:<site>:<bucket>          hash (m)      page -> visits that began there; kept
 *                                       zset (h d M)  \x05e -> visits that came to a second event
 *                                                     there; \x05s -> seconds that visits grew by
 *     t:{p}:visit:<site>:<slot>         hash          visitor (16 bytes) -> time of the last event
 *                                                     and of its arrival, in seconds: 40 bits
 *                                                     each, big endian; the first bit: the visit
 *                                                     has one event.  Of a user also the index
 *                                                     (32 bits), the newest day that is known to
 *                                                     have the bit of `active` (24 bits, +4194304;
 *                                                     0: none) and a hash of what `users` was when
 *                                                     both were true (40 bits); expires.
 *                                                     slot = arrival / 2 visit timeouts, in s
 *
 * Which names have a place in an hour of the site's zone (places/places.h), in the partition where
 * the names are counted.  Of an hour that is closed for readers the counters tell that, and there
 * is no hash unless a cap is near:
 *
 *     t:{p}:places:<site>:<bucket>      hash          n<keyed hash> -> since when the name has a
 *                                                     place (ms).  c<class> -> how many names of
 *                                                     the class have one.  f<class> -> since when
 *                                                     some have none (ms).  k<keyed hash> -> since
 *                                                     when a place is kept for a name of the hour
 *                                                     before (ms).  With an s in front: the same
 *                                                     for visits that begin there.  Expires
 *
 * The state of each partition:
 *
 *     t:{p}:state                       hash          see the fields below
 *     t:{p}:pass                        hash          the rollup pass: see the fields below
 *     t:{p}:open                        set           <site>:<bucket> that a rollup must visit
 *     t:{p}:sites                       set           the sites whose whole site lies here
 *
 * Fields of t:{p}:state:
 *
 *     cfg      the settings that belong to the data (settings.h)
 *     st       how far the partition is rolled up (time/closed.h)
 *     ver      a random id: new with each write into a closed bucket, and with each bucket that is
 *              closed for readers
 *     over     11 digits, a blank, a random id: minutes that end by this second have changed only
 *              if the id has changed (partition_state.h)
 *     kept     which buckets still expire by an older, shorter keep time (settings.h)
 *     zones    the zones of the sites (time/site_zones.h); no field if all are UTC
 *     users    an id: new when a user is forgotten or a bit of a user is taken back; no field
 *              before that
 *     deleted  sites and pages of which nothing is counted (tombstones.h); no field before the
 *              first one
 *     deleting the id of a deletion (deletion_record.h) while it takes keys and fields away
 *     swept    the first day whose bitmaps of activity have not been taken away
 *     fold     a random id: new with each fold, and at both ends of a deletion.  If another fold
 *              has counted meanwhile, a fold begins again, also where no WATCH can tell that: see
 *              lua/fold.lua
 *     <log>    the cursor of a log: how far its entries are counted in this partition.  "n": up to
 *              entry n; "n:i": up to n - 1, and of n the first i events.  No field: nothing is
 *              counted.  In the middle of a fold: a list, an item for each stripe (log_state.h)
 *
 * Fields of t:{p}:pass.  They are not in the state because every step of a rollup changes them, and
 * a fold that WATCHes the state would begin again each time:
 *
 *     pass     the id of the rollup pass that is open; no field if none is
 *     cur      how far that pass has come: m<pages> while it merges, x<chunks> while it sets
 *              expiries
 *     ftok     the greatest fencing token that was seen of a leader
 *     over     of partition 0: the latest instant of a deletion that is over, ms; no field before
 *              the first one (core/deletions.h)
 *
 * Activity, in the partition of (site, visitor).  The day stands last, so no action can make a key
 * read as another key:
 *
 *     t:{p}:uid:<site>                  hash          user -> index, dense.  Field "" (no user is
 *                                                     empty): the next index
 *     t:{p}:ids:<site>:<block>          list          the users of 128 indices, in order; "" is a
 *                                                     user that was forgotten
 *     t:{p}:act:<site>:<action>:<YYYYMMDD>
 *                                       bitmap        bit i: the user of index i did it on that
 *                                                     day of the site's zone; taken away by
 *                                                     lua/sweep_days.lua
 *     t:{p}:acts                        zset          <site>:<action>:<YYYYMMDD> of each bitmap ->
 *                                                     days since 1970-01-01
 *     t:{p}:gone                        set           <site>:<index> of users that were forgotten
 *                                                     and have bits left
 *
 *     t:{p}:first:<ticket>              string        which events of a request were the first of
 *                                                     their user's day (first_note.h); expires
 *
 * Users who saw pages, in the partition of (site, visitor); see seen/layout.h:
 *
 *     t:{p}:seen:<site>:<bucket>:log    string        pairs of user and page as they came; expires
 *     t:{p}:seen:<site>:<bucket>:old    string        a log that is being folded; expires
 *     t:{p}:seen:<site>:<bucket>:filter
 *                                       hash          shape of the Bloom filter; expires
 *     t:{p}:seen:<site>:<bucket>:bits:<layer>.<segment>
 *                                       string        its bits; expires
 *
 * Bloom filters that have a name; see filter/shape.h:
 *
 *     t:{p}:bf:<site>:<name>            hash          the filter
 *     t:{p}:bfs:<site>:<name>           hash          a shard of it, one a partition
 *     t:{p}:bfl:<site>:<name>:<id>:<layer>.<segment>
 *                                       string        the bits of a shard
 *
 * Logs: requests that are acknowledged, and counted later (storage/log/PROTOCOL.md).  <log>
 * is 16 hexadecimal digits, random.  A digest of an Idempotency-Key, and of whose key it is, stands
 * for the key, so no text of a client stands in a key of Redis:
 *
 *     t:{0}:heads                       hash          <log> -> its head (log_state.h): the register
 *                                                     of all logs.  closed -> how many were closed
 *     t:{0}:log:<log>                   stream        entries (log/entry.h); those that are
 *                                                     counted in all partitions are cut off
 *     t:{0}:key:<digest>                string        the record of a key (log/record.h); expires
 *
 *     In a cluster there are up to 64 places of logs, and {0} is the partition of the place
 *     (core_log_partition()).
 *
 * Rate limits, in the partition of the key.  A policy has no ':'; without a policy <policy> is
 * empty:
 *
 *     t:{p}:rl:funnel:<policy>:<key>    string        see lua/funnel.lua; expires
 *     t:{p}:rl:sliding:<policy>:<key>   zset          see lua/sliding.lua; expires
 *     t:{p}:rl:funnel2:.., sliding2:..                the same for the second limit of its
 *                                                     algorithm in the policy, and so on
 *     t:{p}:rl:penalty:<policy>:<key>   string        see lua/policy.lua; expires
 *     t:{p}:rl:ingest:<kind>:<who>      string        a funnel of the ingestion guard; kind: token,
 *                                                     ip or site; an address is hashed; expires
 *
 * Of all partitions together:
 *
 *     t:{0}:meta                        string        schema version and number of partitions
 *     t:{0}:made                        string        of a cluster: all partitions have had states
 *     t:{0}:secret                      string        32 random bytes: the key of the hashes of
 *                                                     visitors and addresses
 *     t:{0}:hot                         zset          process (16 hexadecimal digits, random) ->
 *                                                     when it was heard of, ms; expires
 *                                                     (hot/fleet.h)
 *     t:{0}:hot:<process>               string        its hot pages (hot/published.h); expires
 *     t:{0}:secret:<start>              string        the key of the hashes of addresses in the
 *                                                     rotation period that begins at <start>
 *                                                     (core/period_secrets.h); expires
 *     t:{0}:late                        set           the beginnings of periods whose secret was
 *                                                     made anew after it had expired
 *     t:{0}:sets:<site>                 hash          page set's name -> its pages, '\n' behind
 *                                                     each (no page has one in it)
 *     t:{0}:lock                        string        the token of the rollups' leader; expires
 *     t:{0}:lock:<hash of the secret>   string        the same on the servers of --lock-redis;
 *                                                     expires
 *     t:{0}:fence                       integer       the last fencing token that was drawn
 *     t:{0}:wish                        string        a process asks for a pass of the rollups;
 *                                                     expires
 *     t:{0}:wish:done                   integer       how many wishes were fulfilled
 *     t:{0}:rewritten                   string        the day, since 1970-01-01 UTC, whose rewrite
 *                                                     of the append-only file was begun
 *     t:{0}:deletions                   hash          what is being deleted (deletion_record.h)
 *     t:{0}:probe                       string        /readyz writes it to see whether Redis takes
 *                                                     writes; also written before a WAIT; expires
 */
#ifndef STORAGE_SCHEMA_KEY_H
#define STORAGE_SCHEMA_KEY_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"
#include "storage/job/request_key.h"
#include "storage/schema/partition.h"
#include "storage/job/job.h"
#include "storage/time/bucket.h"

#define KEY_SCHEMA 16 /* another number in t:{0}:meta: the start refuses (prepare/prepare.c) */

/* What a bucket's key counts: visitors, addresses, page views, visits. */
enum key_kind { KEY_UV, KEY_IP, KEY_PV, KEY_VV };

/* Bytes that hold any key. */
#define KEY_MAX (64 + EVENT_SITE_MAX + EVENT_PAGE_MAX)

/* A key: n bytes, no NUL.  Each function below writes a whole key in place of the last one, and
 * returns it, a part of @key.  @tag is the hash tag of the partition, NUL-terminated. */
struct key {
    char p[KEY_MAX];
    size_t n;
};

/* t:{tag}:<name><suffix>; @suffix may be empty. */
struct slice key_fixed(struct key *key, const char *tag, const char *name, struct slice suffix);

/* The same without a suffix, as a word of the command in @out. */
void key_put(struct buffer *out, const char *tag, const char *name);

/* Append the beginning of a command about t:{tag}:<name>: the caller appends the @n words that come
 * behind the key (resp.h). */
void key_command(
    struct buffer *out, const char *command, const char *tag, const char *name, size_t n);

/* The key of a bucket.  @page is ignored for KEY_PV and KEY_VV, whose pages are fields. */
struct slice key_bucket(struct key *key, const char *tag, enum key_kind kind, struct slice site,
    struct bucket bucket, struct slice page);

/* t:{tag}:places:<site>:<bucket>; the bucket is an hour. */
struct slice key_places(struct key *key, const char *tag, struct slice site, struct bucket hour);

/* t:{tag}:uid:<site> */
struct slice key_user_index(struct key *key, const char *tag, struct slice site);

/* The prefix t:{tag}:ids:<site>: that a block's number completes. */
struct slice key_user_ids(struct key *key, const char *tag, struct slice site);
#define KEY_IDS_BLOCK 128 /* users in a block; forget_user.lua has this number too */

/* The bitmap of @action on @day: days since 1970-01-01, until 9999-12-31. */
struct slice key_activity(
    struct key *key, const char *tag, struct slice site, struct slice action, int64_t day);

/* The prefix t:{tag}:act: that a member of t:{tag}:acts completes. */
struct slice key_activity_prefix(struct key *key, const char *tag);

/* Does @member, of t:{p}:acts or t:{p}:gone, belong to @site?  If so, *ret_rest is what follows the
 * site and its ':', a part of @member. */
bool key_member_of(struct slice member, struct slice site, struct slice *ret_rest) MUST_CHECK;

/* t:{tag}:key:<digest> */
struct slice key_record(struct key *key, const char *tag, const struct key_digest *digest);

/* t:{tag}:first:<ticket> */
struct slice key_first(struct key *key, const char *tag, const struct key_digest *ticket);

/* t:{tag}:sets:<site> */
struct slice key_page_sets(struct key *key, const char *tag, struct slice site);

/* The prefix t:{tag}:visit:<site>: that a slot's number completes. */
struct slice key_visit_prefix(struct key *key, const char *tag, struct slice site);

enum key_limit_kind { KEY_LIMIT_FUNNEL, KEY_LIMIT_SLIDING, KEY_LIMIT_PENALTY, KEY_LIMIT_GUARD };

/* The partition of all limits of @who. */
unsigned key_limit_partition(const struct partitions *partitions, struct slice who);

/* The key of a limit of @policy, or of its penalty, in the partition of @who: all keys of one
 * decision lie together.  @nth counts, from 0, the limits of one algorithm in a policy. */
struct slice key_limit(struct key *key, const struct partitions *partitions,
    enum key_limit_kind kind, size_t nth, struct slice policy, struct slice who);

/* The hash of a named filter, the hash of a shard, the bits of a segment of a shard's layer. */
struct slice key_filter(struct key *key, const char *tag, struct slice site, struct slice name);
struct slice key_filter_shard(
    struct key *key, const char *tag, struct slice site, struct slice name);
struct slice key_filter_bits(struct key *key, const char *tag, struct slice site, struct slice name,
    uint64_t id, unsigned layer, uint64_t segment);

/* t:{tag}:seen:<site>:<month>:<what>; @what is "log", "old" or "filter". */
struct slice key_seen(
    struct key *key, const char *tag, struct slice site, struct bucket month, const char *what);

/* The bits of a segment of a month's layer. */
struct slice key_seen_bits(struct key *key, const char *tag, struct slice site, struct bucket month,
    unsigned layer, uint64_t segment);

/* Write a member of t:{p}:open: <site>:<bucket>. */
struct slice key_open_member(struct key *member, struct slice site, struct bucket bucket);

/* Read a member of t:{p}:open.  The bucket is cut in the site's zone, so a caller reads the site
 * first, then finds the zone, then reads both.  *ret_site is a part of @member.  False: @member is
 * no such member, or no bucket of @zone begins at its time. */
bool key_open_site(struct slice member, struct slice *ret_site) MUST_CHECK;
bool key_open_parse(struct slice member, const struct zone *zone, struct slice *ret_site,
    struct bucket *ret_bucket) MUST_CHECK;

/* Append the pattern for SCAN of keys that may be @site's, in the partition of @tag or, with NULL,
 * in all.  Keys of other sites fit, too. */
void key_site_pattern(struct buffer *out, const char *tag, struct slice site);

#endif
