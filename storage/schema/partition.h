/* partition.h - how sites, pages and visitors are spread over partitions.
 *
 * Layer: storage, pure.  Thread-safe once made.
 * Everything is cut into P partitions.  Each key carries its partition's hash tag, so a partition
 * lies in one slot of a Redis Cluster and a script never leaves it.  The tag of partition p is the
 * smallest decimal number whose slot lies in the p-th of P equal ranges of the 16,384: then any
 * number of nodes that divides the slots evenly gets an even share of the partitions (tags "0",
 * "1", .. would not).
 */
#ifndef STORAGE_SCHEMA_PARTITION_H
#define STORAGE_SCHEMA_PARTITION_H

#include <stdint.h>

#include "storage/base/slice.h"

#define PARTITIONS_MAX 64

struct partitions {
    unsigned n;
    char tag[PARTITIONS_MAX][8]; /* NUL-terminated decimal */
};

/* @n is 1..PARTITIONS_MAX. */
void partitions_make(unsigned n, struct partitions *ret);

/* The partition of a 64-bit hash: its share of the hash's range. */
static inline unsigned partition_of(const struct partitions *parts, uint64_t hash)
{
    return (unsigned)(((hash >> 32) * parts->n) >> 32);
}

/* Hash of a site's page; the whole site is the page of no bytes.  XXH3 (xxHash), seed 0: the hash
 * is part of the data's layout and must not change. */
uint64_t page_hash(struct slice site, struct slice page);

#endif
