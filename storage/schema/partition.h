/* partition.h - how sites, pages and visitors are spread over partitions.
 *
 * Layer: storage, pure.  Thread-safe once made: from then on it is only read.
 *
 * All data is cut into P partitions.  A key in Redis carries the hash tag of its partition.  So a
 * partition lies in one slot of a Redis Cluster, and a script never leaves its partition.
 *
 * A cluster has 16,384 slots and gives each node a range of them.  The tag of partition p is the
 * smallest decimal number whose slot lies in the p-th of P equal ranges.  So any number of nodes
 * that divides the slots evenly gets an even share of the partitions.  The tags "0", "1", "2" would
 * not do that.  The tag "0" is among them whatever P is, being the smallest number of all.
 *
 * What is kept of visitors and users lies in 64 of the partitions at most, at equal distances.  A
 * question of a site's visits, or of its active users, asks each of these.
 */
#ifndef STORAGE_SCHEMA_PARTITION_H
#define STORAGE_SCHEMA_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/config.h"

#define CLUSTER_SLOTS 16384u /* every Redis Cluster has so many slots */

#define LOG_PARTITIONS_MAX 64 /* partitions that logs may lie in: a question reads all registers */

#define VISITOR_PARTITIONS_MAX 64 /* partitions of visitors: a question of a site asks them all */

#define PARTITION_TAG_ALWAYS "0" /* the tag of one partition, whatever their number */

struct partitions {
    unsigned n;
    char tag[PARTITIONS_MAX][8]; /* NUL-terminated decimal */
};

/* Find the tags of @n partitions, 1..PARTITIONS_MAX. */
void partitions_make(unsigned n, struct partitions *ret);

/* The slot of a cluster, 0 to 16383, in which all keys of partition @p lie. */
unsigned partition_slot(const struct partitions *parts, unsigned p);

/* The partition of a 64-bit hash.  Each partition has an equal range of hashes. */
static inline unsigned partition_of(const struct partitions *parts, uint64_t hash)
{
    return (unsigned)(((hash >> 32) * parts->n) >> 32);
}

/* How many of @n partitions visitors lie in. */
static inline unsigned visitor_partitions(unsigned n)
{
    return n < VISITOR_PARTITIONS_MAX ? n : VISITOR_PARTITIONS_MAX;
}

/* The @i-th partition of visitors, from 0 on.  With 128 partitions or more no logs lie in these
 * partitions, so no slot of a cluster has the load of both. */
unsigned visitor_partition_at(const struct partitions *parts, unsigned i);

/* Can there be visitors in partition @p? */
bool partition_has_visitors(const struct partitions *parts, unsigned p);

/* The number, among the partitions of visitors, of @p, which is one of them. */
unsigned visitor_partition_number(const struct partitions *parts, unsigned p);

/* The partition of a visitor with a 64-bit hash.  Each partition of visitors has an equal range of
 * hashes. */
unsigned partition_of_visitor(const struct partitions *parts, uint64_t hash);

/* The partition of a name of @site, whose hash with the site is @hash: see page_hash().  The hash
 * chooses the partition of most names; values of dimensions and sections lie with their site, whose
 * partition every page view touches anyway. */
unsigned name_partition(
    const struct partitions *parts, struct slice site, struct slice name, uint64_t hash);

/* The hash of a site's page.  The page of no bytes is the whole site.  An event's site has at most
 * EVENT_SITE_MAX bytes, its page EVENT_PAGE_MAX; longer texts, which only a foreign hand writes to
 * Redis, have a hash, too.  XXH3 (xxHash) with seed 0: the hash is part of the data's layout and
 * must not change. */
uint64_t page_hash(struct slice site, struct slice page);

#endif
