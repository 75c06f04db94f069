#include "storage/cluster/slot_map.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

bool cluster_node_equal(const struct cluster_node *a, const struct cluster_node *b)
{
    bool ids_agree = a->id[0] == '\0' || b->id[0] == '\0' || strcmp(a->id, b->id) == 0;
    return ids_agree && redis_address_equal(&a->address, &b->address);
}

/* ---- reading ---- */

struct slot_reader {
    const char *asked_host;
    struct slot_map map;
    uint16_t owner[CLUSTER_SLOTS]; /* of a slot; SLOT_MAP_NOBODY */
};

/* Read a node: [endpoint, port, id, ..].  Only very old servers leave the id out. */
static bool node_parse(const char *asked_host, const struct reply *reply, struct cluster_node *ret)
{
    if (reply->type != REPLY_ARRAY || reply->n < 2) {
        return false;
    }
    const struct reply *endpoint = &reply->items[0];
    const struct reply *id = reply->n > 2 ? &reply->items[2] : NULL;
    int64_t port = reply_integer(&reply->items[1], -1);
    bool absent =
        endpoint->type == REPLY_NIL || (endpoint->type == REPLY_TEXT && endpoint->text.n == 0);
    if (!absent && endpoint->type != REPLY_TEXT) {
        return false;
    }
    if (port <= 0 || port > 65535 || (id != NULL && id->type != REPLY_TEXT) ||
        (id != NULL && id->text.n >= sizeof(ret->id))) {
        return false;
    }
    *ret = (struct cluster_node){.address.port = (int)port};
    if (id != NULL && id->text.n > 0) {
        memcpy(ret->id, id->text.p, id->text.n);
    }
    if (!absent && slice_equal(endpoint->text, SLICE("?"))) {
        return true; /* a node, but it is not known how to reach it */
    }
    return redis_address_set_host(&ret->address, absent ? slice_of(asked_host) : endpoint->text);
}

/* The node in the map, put there if it is new; NULL: no room. */
static struct cluster_node *node_place(struct slot_map *map, const struct cluster_node *node)
{
    for (size_t i = 0; i < map->n_nodes; i++) {
        struct cluster_node *other = &map->nodes[i];
        if (node->id[0] != '\0' ? strcmp(node->id, other->id) == 0
                                : redis_address_equal(&node->address, &other->address)) {
            return other;
        }
    }
    if (map->n_nodes == CLUSTER_NODES_MAX ||
        !array_reserve(&map->nodes, &map->room, map->n_nodes, sizeof(*map->nodes))) {
        return NULL;
    }
    map->nodes[map->n_nodes] = *node;
    return &map->nodes[map->n_nodes++];
}

/* Read a range of slots: [first slot, last slot, primary, replica, ..]. */
static bool range_parse(struct slot_reader *r, const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY || reply->n < 3) {
        return false;
    }
    int64_t first = reply_integer(&reply->items[0], -1);
    int64_t last = reply_integer(&reply->items[1], -1);
    if (first < 0 || last < first || last >= CLUSTER_SLOTS) {
        return false;
    }
    uint16_t primary = SLOT_MAP_NOBODY;
    for (size_t i = 2; i < reply->n; i++) {
        struct cluster_node read;
        if (!node_parse(r->asked_host, &reply->items[i], &read)) {
            return false;
        }
        struct cluster_node *node = node_place(&r->map, &read);
        if (node == NULL) {
            return false;
        }
        if (i == 2) {
            primary = (uint16_t)(node - r->map.nodes);
        }
    }
    for (int64_t slot = first; slot <= last; slot++) {
        if (r->owner[slot] != SLOT_MAP_NOBODY) {
            return false;
        }
        r->owner[slot] = primary;
    }
    return true;
}

bool slot_map_parse(const struct reply *reply, const char *asked_host, const uint16_t *slots,
    unsigned n_partitions, struct slot_map *ret)
{
    struct slot_reader r = {.asked_host = asked_host, .map.n_partitions = n_partitions};
    bool good = reply->type == REPLY_ARRAY;
    memset(r.owner, 0xff, sizeof(r.owner)); /* SLOT_MAP_NOBODY */
    for (size_t i = 0; good && i < reply->n; i++) {
        good = range_parse(&r, &reply->items[i]);
    }
    if (!good) {
        slot_map_release(&r.map);
        return false;
    }
    for (unsigned p = 0; p < n_partitions; p++) {
        uint16_t node = r.owner[slots[p]];
        bool owned = node < r.map.n_nodes && r.map.nodes[node].address.host[0] != '\0';
        r.map.owner[p] = owned ? node : SLOT_MAP_NOBODY;
        r.map.n_owned += owned;
    }
    *ret = r.map;
    return true;
}

bool slot_map_of_one(const struct cluster_node *node, unsigned n_partitions, struct slot_map *ret)
{
    struct slot_map map = {.n_partitions = n_partitions};
    if (node != NULL && node_place(&map, node) == NULL) {
        return false;
    }
    map.n_owned = node != NULL ? n_partitions : 0;
    for (unsigned p = 0; p < n_partitions; p++) {
        map.owner[p] = node != NULL ? 0 : SLOT_MAP_NOBODY;
    }
    *ret = map;
    return true;
}

bool slot_map_set_owner(
    struct slot_map *map, unsigned partition, const struct redis_address *address)
{
    struct cluster_node *node = node_place(map, &(struct cluster_node){.address = *address});
    if (node == NULL) {
        return false;
    }
    map->n_owned += map->owner[partition] == SLOT_MAP_NOBODY;
    map->owner[partition] = (uint16_t)(node - map->nodes);
    return true;
}

void slot_map_release(struct slot_map *map)
{
    free(map->nodes);
    map->nodes = NULL;
    map->n_nodes = map->room = 0;
    map->n_partitions = map->n_owned = 0;
}

/* ---- asking ---- */

const struct cluster_node *slot_map_owner(const struct slot_map *map, unsigned partition)
{
    uint16_t node = map->owner[partition];
    return node == SLOT_MAP_NOBODY ? NULL : &map->nodes[node];
}

bool slot_map_owns(const struct slot_map *map, const struct cluster_node *node)
{
    for (unsigned p = 0; p < map->n_partitions; p++) {
        if (slot_map_owner(map, p) == node) {
            return true;
        }
    }
    return false;
}

struct cluster_node *slot_map_at(const struct slot_map *map, const struct redis_address *address)
{
    for (size_t i = 0; i < map->n_nodes; i++) {
        if (redis_address_equal(&map->nodes[i].address, address)) {
            return &map->nodes[i];
        }
    }
    return NULL;
}

const struct cluster_node *slot_map_find(const struct slot_map *map, const char *id)
{
    for (size_t i = 0; id[0] != '\0' && i < map->n_nodes; i++) {
        if (strcmp(map->nodes[i].id, id) == 0) {
            return &map->nodes[i];
        }
    }
    return NULL;
}

bool slot_map_equal(const struct slot_map *a, const struct slot_map *b)
{
    bool equal = a->n_partitions == b->n_partitions;
    for (unsigned p = 0; equal && p < a->n_partitions; p++) {
        const struct cluster_node *of_a = slot_map_owner(a, p);
        const struct cluster_node *of_b = slot_map_owner(b, p);
        equal = of_a == NULL || of_b == NULL ? of_a == of_b : cluster_node_equal(of_a, of_b);
    }
    return equal;
}
