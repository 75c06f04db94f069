#include "storage/filter/items.h"
#include "storage/redis/resp.h"

#include <stdlib.h>
#include <string.h>

/* Bits that one command looks at: with many more, Redis takes longer for each bit. */
#define BITS_A_LOOK 64

bool items_init(struct items *it, struct filter_state *state, struct filter_job *job)
{
    *it = (struct items){.state = state, .job = job};
    it->hashes = calloc(job->n_items, sizeof(*it->hashes));
    it->order = calloc(job->n_items, sizeof(*it->order));
    it->asked = calloc(job->n_items, sizeof(*it->asked));
    it->sent = calloc(job->n_items, sizeof(*it->sent));
    if (it->hashes == NULL || it->order == NULL || it->asked == NULL || it->sent == NULL) {
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
}

/* ---- looking into a layer ---- */

static int by_string(const void *left, const void *right)
{
    const struct items_asked *a = left;
    const struct items_asked *b = right;
    return a->string < b->string ? -1 : a->string > b->string;
}

/* Ask for asked[@from, @to) in one string of a layer. */
static void ask_string(struct items *it, unsigned shard, unsigned index,
    const struct bloom_layer *layer, size_t from, size_t to)
{
    const struct filter_shape *shape = &it->state->shape;
    struct key key;
    struct buffer *out = pipeline_command(&it->state->pipe, filter_place(it->state, shard),
        "BITFIELD_RO", 1 + 3 * (to - from) * layer->hashes);
    resp_slice(out, key_filter_bits(&key, filter_tag(it->state, shard), shape->site, shape->name,
                        shape->id, index, it->asked[from].string));
    for (size_t i = from; i < to; i++) {
        for (unsigned bit = 0; bit < layer->hashes; bit++) {
            resp_text(out, "GET");
            resp_text(out, "u1");
            resp_decimal(out, items_bit(it, layer, it->asked[i].item, bit));
        }
    }
    it->sent[it->n_sent++] = (struct items_sent){shard, layer->hashes, from, to - from};
}

/* Ask for all pending items of a shard in one of its layers. */
static void ask_shard(struct items *it, unsigned shard, unsigned index)
{
    struct bloom_layer layer = bloom_layer(&it->state->shape.shard, index);
    size_t most = layer.hashes < BITS_A_LOOK ? BITS_A_LOOK / layer.hashes : 1;
    size_t from = it->n_asked;
    for (uint32_t i = it->first[shard]; i < it->first[shard + 1]; i++) {
        uint32_t item = it->order[i];
        if (items_pending(it, item)) {
            it->asked[it->n_asked++] =
                (struct items_asked){item, (uint32_t)bloom_segment(&layer, it->hashes[item])};
        }
    }
    if (layer.segments > 1) {
        qsort(it->asked + from, it->n_asked - from, sizeof(*it->asked), by_string);
    }
    for (size_t to; from < it->n_asked; from = to) {
        for (to = from + 1;
             to < it->n_asked && to - from < most && it->asked[to].string == it->asked[from].string;
             to++) {
        }
        ask_string(it, shard, index, &layer, from, to);
    }
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

/* Take the replies: items whose bits are all set are answered @found.  False: see pipe.err. */
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
                it->job->answers[it->asked[sent->first + j].item] = (unsigned char)found;
            }
        }
    }
    return true;
}

bool items_probe(struct items *it, enum filter_answer found)
{
    bool any = true;
    while (any) {
        any = false;
        it->n_asked = 0;
        it->n_sent = 0;
        for (unsigned s = 0; s < it->state->shape.shards; s++) {
            if (it->next[s] > it->known[s]) {
                any = true;
                ask_shard(it, s, --it->next[s]);
            }
        }
        if (!pipeline_send(&it->state->pipe, false) || !take_bits(it, found)) {
            return false;
        }
    }
    return true;
}

bool filter_check_items(struct filter_state *state, struct filter_job *job)
{
    struct items it;
    bool ok = items_init(&it, state, job);
    for (unsigned s = 0; s < state->shape.shards; s++) {
        it.next[s] = state->shards[s].n;
    }
    ok = ok && items_probe(&it, FILTER_YES);
    items_release(&it);
    for (size_t i = 0; ok && i < job->n_items; i++) {
        if (job->answers[i] == FILTER_PENDING) {
            job->answers[i] = FILTER_NO;
        }
    }
    return ok;
}
