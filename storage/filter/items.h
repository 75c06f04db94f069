/* items.h - looks the items of one request up in a named filter, and adds them.
 *
 * Layer: storage.  Belongs to a reader's thread, for one job.
 *
 * A large filter lies in several shards, each in a partition of its own, and a shard has layers.
 * An item belongs to one shard; the item is in the filter if one of the shard's layers has all its
 * bits.
 */
#ifndef STORAGE_FILTER_ITEMS_H
#define STORAGE_FILTER_ITEMS_H

#include "storage/filter/state.h"

/* A command under way: for items asked[first .. first + n) of a shard, each of `hashes` bits. */
struct items_sent {
    unsigned shard, hashes;
    size_t first, n;
};

/* Items in the order of their shards; within a shard as they were given, so that of two equal items
 * the first is the one that is new. */
struct items {
    struct filter_state *state;
    struct filter_job *job;
    struct bloom_hash *hashes; /* by item */
    uint32_t *order;           /* items by shard */
    uint32_t first[FILTER_SHARDS_MAX + 1];
    /* By shard: layers before number `known` and from number `next` on were looked into. */
    unsigned known[FILTER_SHARDS_MAX], next[FILTER_SHARDS_MAX];
    struct items_asked {
        uint32_t item;
        uint32_t string;     /* the item's segment in the layer or, in a script, its key's number */
    } * asked;               /* items of the commands under way */
    struct items_sent *sent; /* at most one for each item */
    size_t n_asked, n_sent;
};

/* Hash the items of @job, and sort them by shard.  False: see state->pipe.err.  items_release()
 * must follow in any case. */
bool items_init(struct items *it, struct filter_state *state, struct filter_job *job) MUST_CHECK;
void items_release(struct items *it);

static inline bool items_pending(const struct items *it, uint32_t item)
{
    return it->job->answers[item] == FILTER_PENDING;
}

/* The number of bit @i of an item in its string, as Redis counts bits. */
static inline int64_t items_bit(
    const struct items *it, const struct bloom_layer *layer, uint32_t item, unsigned i)
{
    return (int64_t)bloom_redis_bit(bloom_bit(layer, it->hashes[item], i));
}

/* Look for all pending items in the layers from `known` up to `next` of each shard, the newest
 * first.  The items that are found are answered @found.  False: see state->pipe.err. */
bool items_probe(struct items *it, enum filter_answer found) MUST_CHECK;

/* FILTER_CHECK of a filter that was learnt.  False: see state->pipe.err. */
bool filter_check_items(struct filter_state *state, struct filter_job *job) MUST_CHECK;

/* FILTER_ADD (filter/add.c) to a filter that was learnt.  *ret_gone becomes true if the filter was
 * deleted meanwhile: items without an answer are then FILTER_PENDING.  False: see state->pipe.err.
 */
bool filter_add_items(
    struct filter_state *state, struct filter_job *job, bool *ret_gone) MUST_CHECK;

#endif
