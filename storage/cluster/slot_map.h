/* slot_map.h - which node of a cluster owns each partition, as one node tells it.
 *
 * Layer: storage, pure.  Thread-safe for different maps.
 *
 * The source is the reply to CLUSTER SLOTS.  Redis 7.0 and Valkey 8 give that reply the same form,
 * and there each range of slots has exactly one owner.  In Valkey 8 the reply to CLUSTER SHARDS
 * says less: after a failover one shard lists two masters and does not tell whose the slots are.
 *
 * What CLUSTER SLOTS says of nodes that are not well: a primary that has failed stays the owner of
 * its slots until a replica is promoted.  A replica that has failed is left out, and so is a
 * replica that has received nothing yet.
 */
#ifndef STORAGE_CLUSTER_SLOT_MAP_H
#define STORAGE_CLUSTER_SLOT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/redis/address.h"
#include "storage/redis/reply.h"
#include "storage/schema/partition.h"

#define CLUSTER_NODES_MAX 4096 /* nodes of one map; the bus of a cluster bears about 1000 */
#define CLUSTER_ID_SIZE   41   /* 40 hexadecimal digits and a NUL */
#define SLOT_MAP_NOBODY   UINT16_MAX

struct cluster_node {
    char id[CLUSTER_ID_SIZE];     /* "": not known */
    struct redis_address address; /* host "": it is not known how to reach the node */
    bool doubted; /* for the topology: the node owns some partition, and was found lost */
};

struct slot_map {
    struct cluster_node *nodes; /* owned; first a primary, then its replicas, and so on */
    size_t n_nodes, room;
    unsigned n_partitions;
    unsigned n_owned;               /* partitions whose owner can be reached */
    uint16_t owner[PARTITIONS_MAX]; /* by partition: a node's number; SLOT_MAP_NOBODY: no node */
};

/* Read the reply that the node at @asked_host gave to CLUSTER SLOTS.  @slots has the slot of each
 * of the @n_partitions partitions.  A node without an endpoint is at @asked_host, with the port
 * that the reply names.  The endpoint "?" is unknown: partitions of such a node have no owner.
 *
 * False: the reply has another form, a slot has two owners, or memory is short; @ret is untouched.
 * Else the caller owns *ret and releases it with slot_map_release(). */
bool slot_map_parse(const struct reply *reply, const char *asked_host, const uint16_t *slots,
    unsigned n_partitions, struct slot_map *ret) MUST_CHECK;

/* Make a map in which one node owns all partitions, or in which no partition has an owner if @node
 * is NULL.  False: out of memory. */
bool slot_map_of_one(
    const struct cluster_node *node, unsigned n_partitions, struct slot_map *ret) MUST_CHECK;

/* Make the node at @address the owner of a partition.  A node that the map does not have is added
 * without its id.  False: out of memory, or too many nodes; the map is unchanged. */
bool slot_map_set_owner(
    struct slot_map *map, unsigned partition, const struct redis_address *address) MUST_CHECK;

/* Free the nodes.  The map is empty then: no nodes and no partitions. */
void slot_map_release(struct slot_map *map);

/* The owner of a partition, a part of @map; NULL: no owner is known. */
const struct cluster_node *slot_map_owner(const struct slot_map *map, unsigned partition);

/* Does a node of the map own any partition? */
bool slot_map_owns(const struct slot_map *map, const struct cluster_node *node);

/* The node at this address, a part of @map; NULL: none. */
struct cluster_node *slot_map_at(const struct slot_map *map, const struct redis_address *address);

/* The node with this id, a part of @map; NULL: none, or @id is "". */
const struct cluster_node *slot_map_find(const struct slot_map *map, const char *id);

/* Are @a and @b one node at one address?  Ids are compared only if both are known. */
bool cluster_node_equal(const struct cluster_node *a, const struct cluster_node *b);

/* Do two maps of as many partitions name the same owners at the same addresses? */
bool slot_map_equal(const struct slot_map *a, const struct slot_map *b);

#endif
