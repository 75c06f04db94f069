#include "storage/filter_items.h"

#include <stdlib.h>
#include <string.h>

/* Bits that one command looks at: many more, and Redis takes longer for each. */
#define BITS_A_LOOK 64

bool items_no_memory(struct filter_state *state)
{
    if (state->pipe.err == STORAGE_OK) {
        state->pipe.err = state->pipe.applied ? STORAGE_UNKNOWN : STORAGE_NOMEM;
    }
    return false;
}

bool items_init(struct items *it, struct filter_state *state, struct filter_job *job)
{
    *it = (struct items){.state = state, .job = job};
    it->hashes = calloc(job->n_items, sizeof(*it->hashes));
    it->order = calloc(job->n_items, sizeof(*it->order));
    it->asked = calloc(job->n_items, sizeof(*it->asked));
    it->room = job->n_items;
    it->absent = calloc(job->n_items, sizeof(*it->absent));
    it->groups = malloc(sizeof(*it->groups));
    if (it->hashes == NULL || it->order == NULL || it->asked == NULL || it->absent == NULL ||
        it->groups == NULL) {
        return items_no_memory(state);
    }
    for (size_t i = 0; i < job->n_items; i++) {
        it->hashes[i] = bloom_hash(job->items[i]);
        it->first[1 + filter_shard_of(&state->shape, it->hashes[i])]++;
    }
    for (unsigned s = 0; s < state->shape.shards; s++) {
        it->first[s + 1] += it->first[s];
    }
    uint32_t next[PARTITIONS_MAX];
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
    free(it->absent);
    free(it->groups);
}

/* ---- looking into a layer ---- */

/* Room in asked for the bits of all groups. */
static bool make_room(struct items *it)
{
    size_t room = it->n_asked + it->groups->n_bits;
    if (room <= it->room) {
        return true;
    }
    room += room / 2;
    uint32_t *asked = realloc(it->asked, room * sizeof(*asked));
    if (asked == NULL) {
        return items_no_memory(it->state);
    }
    it->asked = asked;
    it->room = room;
    return true;
}

/* Ask for what is in groups, a command for each; the items in them are @items. */
static bool ask_groups(struct items *it, unsigned shard, unsigned index, const uint32_t *items)
{
    struct pipeline *p = &it->state->pipe;
    const struct filter_shape *shape = &it->state->shape;
    const struct filter_groups *groups = it->groups;
    struct group group = {0};
    if (!make_room(it)) {
        return false;
    }
    filter_groups_end(it->groups);
    while (filter_groups_next(groups, BITS_A_LOOK, &group)) {
        struct key key;
        key_filter_bits(&key, filter_tag(it->state, shard), shape->site, shape->name, shape->id,
            index, groups->strings[group.string]);
        resp_head(&p->out, 2 + 3 * (group.to - group.from));
        resp_text(&p->out, "BITFIELD_RO");
        resp_word(&p->out, key.p, key.n);
        for (size_t i = group.from; i < group.to; i++) {
            resp_text(&p->out, "GET");
            resp_text(&p->out, "u1");
            resp_decimal(&p->out, groups->ordered[i].bit);
            it->asked[it->n_asked++] = items[groups->ordered[i].item];
        }
        p->n++;
    }
    return true;
}

/* Ask for all pending items of a shard in one of its layers. */
static bool ask_shard(struct items *it, unsigned shard, unsigned index)
{
    struct bloom_layer layer = bloom_layer(&it->state->shape.shard, index);
    uint32_t items[FILTER_ITEMS_MAX];
    size_t n = 0;
    filter_groups_begin(it->groups, &layer);
    for (uint32_t i = it->first[shard]; i < it->first[shard + 1]; i++) {
        uint32_t item = it->order[i];
        if (!items_pending(it, item)) {
            continue;
        }
        if (!filter_groups_add(it->groups, it->hashes[item])) {
            if (!ask_groups(it, shard, index, items)) {
                return false;
            }
            filter_groups_begin(it->groups, &layer);
            (void)filter_groups_add(it->groups, it->hashes[item]);
            n = 0;
        }
        items[n++] = item;
        it->absent[item] = false;
    }
    return ask_groups(it, shard, index, items);
}

/* What was asked for: see absent.  False: see pipe.err. */
static bool take_bits(struct items *it)
{
    struct pipeline *p = &it->state->pipe;
    for (size_t taken = 0; taken < it->n_asked;) {
        const struct reply *bits = pipeline_take(p);
        if (bits == NULL) {
            return false;
        }
        if (bits->type != REPLY_ARRAY || bits->n == 0 || bits->n > it->n_asked - taken) {
            return pipeline_foreign(p);
        }
        for (size_t i = 0; i < bits->n; i++, taken++) {
            it->absent[it->asked[taken]] |= bits->items[i].integer == 0;
        }
    }
    return true;
}

bool items_probe(struct items *it, const unsigned *layers, enum filter_answer found, bool *ret_any)
{
    it->n_asked = 0;
    *ret_any = false;
    memset(it->absent, true, it->job->n_items);
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        if (it->probed[s] < layers[s]) {
            *ret_any = true;
            if (!ask_shard(it, s, layers[s] - ++it->probed[s])) {
                return false;
            }
        }
    }
    if (!pipeline_send(&it->state->pipe, false) || !take_bits(it)) {
        return false;
    }
    for (uint32_t i = 0; i < it->job->n_items; i++) {
        if (items_pending(it, i) && !it->absent[i]) {
            it->job->answers[i] = (unsigned char)found;
        }
    }
    return true;
}

bool filter_check_items(struct filter_state *state, struct filter_job *job)
{
    struct items it;
    unsigned layers[PARTITIONS_MAX] = {0};
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
