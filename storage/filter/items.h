/* items.h - the items of one request to a named filter, shard by shard.
 *
 * Layer: storage, private to filter/items.c (looking) and filter/add.c (adding).  Belongs to a
 * reader's thread, for one job.
 */
#ifndef STORAGE_FILTER_ITEMS_H
#define STORAGE_FILTER_ITEMS_H

#include "storage/filter/groups.h"
#include "storage/filter/ops.h"

/* A command under way: for items asked[first .. first + n) of a shard, each of so many bits. */
struct items_sent {
    unsigned shard, hashes;
    size_t first, n;
};

/* Items in the order of their shards; within a shard as they were given, so that of two equal ones
 * the first is the new one. */
struct items {
    struct filter_state *state;
    struct filter_job *job;
    struct bloom_hash *hashes; /* by item */
    uint32_t *order;           /* items by shard */
    uint32_t first[PARTITIONS_MAX + 1];
    unsigned probed[PARTITIONS_MAX]; /* so many of a shard's layers were looked into */
    uint32_t *asked;                 /* items of the commands under way */
    struct items_sent *sent;         /* at most as many */
    size_t n_asked, n_sent;
    struct filter_groups *groups;
};

/* False: see state->pipe.err.  Release it in any case. */
bool items_init(struct items *it, struct filter_state *state, struct filter_job *job);
void items_release(struct items *it);

static inline bool items_pending(const struct items *it, uint32_t item)
{
    return it->job->answers[item] == FILTER_PENDING;
}

/* Bit @i of an item, as Redis counts. */
static inline int64_t items_bit(
    const struct items *it, const struct bloom_layer *layer, uint32_t item, unsigned i)
{
    return (int64_t)bloom_redis_bit(bloom_bit(layer, it->hashes[item], i));
}

/* Look for all pending items in one layer of each shard: the newest of its first @layers[s] that
 * was not looked into yet.  Those found are answered @found.  *ret_any: some layer was asked. */
bool items_probe(struct items *it, const unsigned *layers, enum filter_answer found, bool *ret_any);

#endif
