/* known_counts.h - what counters of open minutes are known to have, so that what comes to them is
 * written as their new values: all counters of a bucket by one HSET, in place of an HINCRBY each.
 *
 * Layer: storage, pure.  The threads of a fold share it.  A partition's part belongs to the thread
 * that counts the partition, from known_counts_take() to the end of the transaction.
 *
 *     take    the state was read behind a WATCH, and has this id of its last fold: what is known
 *             holds if it was learnt of that very fold, and is dropped otherwise
 *     find    a counter that is known may be written as a value
 *     set     the transaction was carried out, and the counter has this value now
 *     hold    the values that were set hold under the id that the transaction gave the state
 *
 * Where a transaction's end is not known, the state has its id, under which nothing is known, or
 * the id before, under which all still holds.  Another process that folds gives the state an id of
 * its own, and a Redis that has gone back has an older one.  A deletion takes counters away without
 * a new id each time: while the state says that one sweeps the partition, nothing is taken.
 *
 * Only counters of minutes that began lately are remembered.  Their keys cannot have expired, and
 * nobody but folds and deletions changes them.
 *
 * A counter goes by 128 bits of SipHash-2-4 of its name, with a key that only this process has:
 * senders choose the names, and must not find two with one hash.  The memory is bounded.  A part
 * that is full is forgotten: it is mostly of minutes that are over.  A site that has more counters
 * in a minute than fit (3,072 a partition of 16) gains nothing.
 */
#ifndef STORAGE_KNOWN_KNOWN_COUNTS_H
#define STORAGE_KNOWN_KNOWN_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/schema/partition.h"

/* The partitions share so many slots, of 24 bytes: each gets its part when it has the first
 * counter, and KNOWN_COUNTS_MIN at least. */
#define KNOWN_COUNTS     65536
#define KNOWN_COUNTS_MIN 64
#define KNOWN_NAME_BYTES 16
#define KNOWN_RECENT_S   600 /* minutes that began so long ago are kept, whatever the settings */

struct known_count {
    uint8_t name[KNOWN_NAME_BYTES];
    uint64_t value; /* 0: empty */
};

/* What is known of a partition. */
struct known_part {
    uint64_t id;               /* hash of the id under which the part holds; 0: nothing is known */
    int64_t now_ms;            /* when the part was taken last, by Redis's clock, UTC */
    struct known_count *slots; /* owned; open addressing */
    uint32_t n;
};

struct known_counts {
    uint8_t key[KNOWN_NAME_BYTES];
    uint32_t size; /* slots of a part, a power of two */
    struct known_part parts[PARTITIONS_MAX];
};

/* @n_partitions are those of the data set. */
void known_counts_init(struct known_counts *known, unsigned n_partitions);

/* Forget all, and free the memory. */
void known_counts_release(struct known_counts *known);

/* The state of @partition has an id of its last fold whose hash is @id; 0: there is none.  @now_ms
 * is Redis's clock.  If that has gone back all is forgotten, because counters that were too old to
 * be remembered may be young again. */
void known_counts_take(struct known_counts *known, unsigned partition, uint64_t id, int64_t now_ms);

/* The transaction that took the part was carried out: the id of the last fold has the hash @id now,
 * under which the part holds. */
void known_counts_hold(struct known_counts *known, unsigned partition, uint64_t id);

/* The counters of a bucket: fields of the hash at a key. */
struct known_bucket {
    const struct known_counts *known;
    struct known_part *part;
    uint8_t key[KNOWN_NAME_BYTES];
};

/* @bucket: the one whose hash in @partition has the key @key, of @n bytes.  @known outlives it. */
void known_bucket_init(struct known_bucket *bucket, struct known_counts *known, unsigned partition,
    const char *key, size_t n);

/* What the counter of @name has; 0: not known. */
uint64_t known_bucket_find(const struct known_bucket *bucket, struct slice name);

/* Remember that the counter of @name has @value; 0, or no memory: its value is not known then,
 * which does no harm. */
void known_bucket_set(const struct known_bucket *bucket, struct slice name, uint64_t value);

#endif
