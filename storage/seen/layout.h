/* layout.h - how Redis keeps which user has seen which page, and for how long.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * A pair (user, page) of a site is a fingerprint of 64 bits, in the partition of the user.  A pair
 * belongs to the month (UTC) in which it arrived, or was counted if the clock was set back between.
 * A month is kept until `keep` after its end, and then expires as a whole.
 *
 *   t:{p}:seen:<site>:<month>:log     string  fingerprints as they came, 8 bytes each
 *   t:{p}:seen:<site>:<month>:old     string  a log that is being folded
 *   t:{p}:seen:<site>:<month>:filter  hash    ver (random, new with every step of a fold),
 *                                             capacity, error, rules, n (layers), 0.. (items of
 *                                             each)
 *   t:{p}:seen:<site>:<month>:bits:<layer>.<segment>
 *                                     string  the bits
 *
 * Events append to the log, in the transaction that counts them.  That costs some hundredths of a
 * microsecond an event; to set the bits of a Bloom filter one by one would cost more than all else.
 * Once a log has SEEN_LOG_BYTES it is folded (seen/fold.h).  The log is renamed to `old`; its
 * fingerprints are set in the bits, which a process reads, changes and writes back in whole
 * strings; only then is the log deleted.
 *
 * A string of bits has at most 128 KiB, because Redis copies it twice while the script that writes
 * it holds Redis: 0.15 ms, or 2 ms where the machine has to find the memory.
 *
 * Bits are only ever added.  So a question that reads log, old, filter and bits in this order finds
 * whatever was there when it began: no fold can hide anything from it.
 */
#ifndef STORAGE_SEEN_LAYOUT_H
#define STORAGE_SEEN_LAYOUT_H

#include "storage/job/config.h"
#include "storage/schema/identity.h"
#include "storage/sketch/bloom.h"
#include "storage/time/bucket.h"

#define SEEN_LOG_BYTES    131072
#define SEEN_SEGMENT_BITS BLOOM_STRING_BITS(128 << 10)
#define SEEN_MONTHS_MAX   16 /* so many months can be kept; more if the clock was set back */

/* The field `rules` of a filter's hash. */
enum seen_rules {
    SEEN_REDISBLOOM_LONG = 1, /* RedisBloom's, in segments of up to 512 KiB; not made any more */
    SEEN_OWN_LONG = 2,        /* our own, in segments of that length; not made any more */
    SEEN_OWN = 3,
};

/* What stands for "this user viewed this page" in logs and filters; part of the data's layout. */
uint64_t seen_fingerprint(const struct visitor_id *user, uint64_t page_hash);

/* Where a fingerprint, which is a hash already, lies in a Bloom filter. */
struct bloom_hash seen_hash(uint64_t fingerprint);

/* When the pairs that arrived in @month expire: UTC milliseconds. */
int64_t seen_expire_ms(struct bucket month, int64_t keep_s);

/* The newest month that may have pairs.  @latest_s: the latest time that Redis's clock is known to
 * have had.  On the last day of a month the result is the next month, which may be too early. */
struct bucket seen_newest_month(int64_t latest_s);

/* The months that are kept at @now_s, from @newest on back; at most SEEN_MONTHS_MAX, and 0 where
 * @newest is not kept. */
unsigned seen_months(
    struct bucket newest, int64_t now_s, int64_t keep_s, struct bucket ret[SEEN_MONTHS_MAX]);

/* The parameters of a new month's filter in one of @partitions partitions: its share of the
 * capacity, or more where that is too little for a filter, and its share of the error, which is
 * meant for all months together.  By our own rules (bloom.h). */
struct bloom_params seen_params(const struct seen_config *config, unsigned partitions);

#endif
