#include "storage/filter/items.h"
#include "storage/redis/resp.h"

#include <stdlib.h>
#include <string.h>

/* Bits that one command looks at: many more, and Redis takes longer for each. */
#define BITS_A_LOOK 64

bool items_init(struct items *it, struct filter_state *state, struct filter_job *job)
{
    *it = (struct items){.state = state, .job = job};
    it->hashes = calloc(job->n_items, sizeof(*it->hashes));
    it->order = calloc(job->n_items, sizeof(*it->order));
    it->asked = calloc(job->n_items, sizeof(*it->asked));
    it->sent = calloc(job->n_items, sizeof(*it->sent));
    it->groups = malloc(sizeof(*it->groups));
    if (it->hashes == NULL || it->order == NULL || it->asked == NULL || it->sent == NULL ||
        it->groups == NULL) {
        return pipeline_fail(&state->pipe, STORAGE_NOMEM);
    }
    for (size_t i = 0; i < job->n_items; i++) {
        it->hashes[i] = bloom_hash(job->items[i]);
        it->first[1 + filter_shard_of(&state->shape, it->hashes[i])]++;
    }
    for (unsigned s = 0; s < state->shape.shards; s++) {
        it->first[s + 1] += it->first[s];
    }
    uint32_t next[FILTER_SHARDS_MAX];
    memcpy(next, it->first, sizeof(next));
    for (size_t i = 0; i < job->n_items; i++) {
        it->order[next[filter_shard_of(&state->shape, it->hashes[i])]++] = (uint32_t)i;
    }
    return true;
}

void items_release(struct items *it)
{
    free(it->hashes);
    free(it->order);
    free(it->asked);
    free(it->sent);
    free(it->groups);
}

/* ---- looking into a layer ---- */

/* Ask for the items in groups, which are the last ones of asked. */
static void ask_groups(
    struct items *it, unsigned shard, unsigned index, const struct bloom_layer *layer)
{
    struct pipeline *p = &it->state->pipe;
    const struct filter_shape *shape = &it->state->shape;
    const struct filter_groups *groups = it->groups;
    uint32_t items[FILTER_ITEMS_MAX];
    uint32_t *asked = it->asked + it->n_asked - groups->n_items;
    size_t most = layer->hashes < BITS_A_LOOK ? BITS_A_LOOK / layer->hashes : 1;
    struct group group = {0};
    filter_groups_end(it->groups);
    memcpy(items, asked, groups->n_items * sizeof(*items));
    while (filter_groups_next(groups, most, &group)) {
        size_t n = group.to - group.from;
        struct key key;
        struct buffer *out = pipeline_command(
            p, filter_place(it->state, shard), "BITFIELD_RO", 1 + 3 * n * layer->hashes);
        resp_slice(out, key_filter_bits(&key, filter_tag(it->state, shard), shape->site,
                            shape->name, shape->id, index, groups->segments[group.string]));
        it->sent[it->n_sent++] =
            (struct items_sent){shard, layer->hashes, (size_t)(asked - it->asked), n};
        for (size_t i = group.from; i < group.to; i++) {
            *asked = items[groups->ordered[i]];
            for (unsigned bit = 0; bit < layer->hashes; bit++) {
                resp_text(out, "GET");
                resp_text(out, "u1");
                resp_decimal(out, items_bit(it, layer, *asked, bit));
            }
            asked++;
        }
    }
}

/* Ask for all pending items of a shard in one of its layers. */
static void ask_shard(struct items *it, unsigned shard, unsigned index)
{
    struct bloom_layer layer = bloom_layer(&it->state->shape.shard, index);
    filter_groups_begin(it->groups);
    for (uint32_t i = it->first[shard]; i < it->first[shard + 1]; i++) {
        uint32_t item = it->order[i];
        uint64_t segment = bloom_segment(&layer, it->hashes[item]);
        if (!items_pending(it, item)) {
            continue;
        }
        if (!filter_groups_add(it->groups, segment)) {
            ask_groups(it, shard, index, &layer);
            filter_groups_begin(it->groups);
            (void)filter_groups_add(it->groups, segment);
        }
        it->asked[it->n_asked++] = item;
    }
    ask_groups(it, shard, index, &layer);
}

static bool all_set(const struct reply *bits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bits[i].integer == 0) {
            return false;
        }
    }
    return true;
}

/* Items whose bits are all set are answered @found.  False: see pipe.err. */
static bool take_bits(struct items *it, enum filter_answer found)
{
    struct pipeline *p = &it->state->pipe;
    for (size_t i = 0; i < it->n_sent; i++) {
        const struct items_sent *sent = &it->sent[i];
        const struct reply *bits = pipeline_take(p);
        if (bits == NULL) {
            return false;
        }
        if (bits->type != REPLY_ARRAY || bits->n != sent->n * sent->hashes) {
            return pipeline_foreign(p, FILTER_KEY);
        }
        for (size_t j = 0; j < sent->n; j++) {
            if (all_set(bits->items + j * sent->hashes, sent->hashes)) {
                it->job->answers[it->asked[sent->first + j]] = (unsigned char)found;
            }
        }
    }
    return true;
}

bool items_probe(struct items *it, const unsigned *layers, enum filter_answer found, bool *ret_any)
{
    it->n_asked = 0;
    it->n_sent = 0;
    *ret_any = false;
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        if (it->probed[s] < layers[s]) {
            *ret_any = true;
            ask_shard(it, s, layers[s] - ++it->probed[s]);
        }
    }
    return pipeline_send(&it->state->pipe, false) && take_bits(it, found);
}

bool filter_check_items(struct filter_state *state, struct filter_job *job)
{
    struct items it;
    unsigned layers[FILTER_SHARDS_MAX] = {0};
    for (unsigned s = 0; s < state->shape.shards; s++) {
        layers[s] = state->shards[s].n;
    }
    bool ok = items_init(&it, state, job);
    for (bool any = true; ok && any;) {
        ok = items_probe(&it, layers, FILTER_YES, &any);
    }
    items_release(&it);
    for (size_t i = 0; ok && i < job->n_items; i++) {
        if (job->answers[i] == FILTER_PENDING) {
            job->answers[i] = FILTER_NO;
        }
    }
    return ok;
}
