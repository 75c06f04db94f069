#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "storage/filter_items.h"

/* Bits that one script sets one by one at most: one or two ms, as GROUPS_BITS_MAX at once. */
#define BITS_ONE_BY_ONE 1000

/* A script under way: items asked[first .. first + n) of a shard. */
struct script_sent {
    unsigned shard;
    size_t first, n;
};

/* Number of a shard's newest layer, from 0. */
static unsigned newest(const struct items *it, unsigned s)
{
    unsigned n = it->state->shards[s].n;
    return n == 0 ? 0 : n - 1;
}

/* Every string has items, but for once in e^32: to look for each costs a tenth of an add. */
static bool strings_are_there(
    const struct items *it, unsigned s, unsigned index, const struct bloom_layer *layer)
{
    uint64_t strings = layer->segments * layer->strings;
    return it->state->shards[s].items[index] >= (strings == 1 ? 1 : 32 * strings);
}

/* A script ends at the second new string that it would have to make: items behind that would come
 * back.  So many of a shard's may be expected to go in. */
static size_t items_that_fit(
    const struct items *it, unsigned s, unsigned index, const struct bloom_layer *layer)
{
    double strings = (double)layer->segments * (double)layer->strings;
    double items = (double)it->state->shards[s].items[index];
    double hits = items * (layer->strings == 1 ? 1 : layer->hashes) / strings;
    return strings == 1 || strings_are_there(it, s, index, layer)
               ? FILTER_ITEMS_MAX
               : (size_t)fmin(2 * exp(hits) + 2, FILTER_ITEMS_MAX);
}

/* Put pending items of shard @s from order[*at] on into groups, as many as fit into a script; if
 * there are more than @room they go in one by one. */
static void gather(struct items *it, unsigned s, unsigned index, const struct bloom_layer *layer,
    uint64_t room, uint32_t *at, struct script_sent *ret)
{
    size_t most = items_that_fit(it, s, index, layer);
    size_t one_by_one = BITS_ONE_BY_ONE / layer->hashes;
    *ret = (struct script_sent){.shard = s, .first = it->n_asked};
    filter_groups_begin(it->groups, layer);
    if (!strings_are_there(it, s, index, layer) && most > one_by_one) {
        most = one_by_one;
    }
    for (; *at < it->first[s + 1] && ret->n < most; (*at)++) {
        uint32_t item = it->order[*at];
        if (!items_pending(it, item)) {
            continue;
        }
        if ((ret->n >= room && ret->n >= one_by_one) ||
            !filter_groups_add(it->groups, it->hashes[item])) {
            break;
        }
        it->asked[it->n_asked++] = item;
        ret->n++;
    }
    filter_groups_end(it->groups);
}

/* Write a script with the pending items of shard @s from order[*at] on, as many as fit. @planned:
 * items of the shard that are under way. */
static void write_script(
    struct items *it, unsigned s, uint64_t planned, uint32_t *at, struct script_sent *ret)
{
    struct pipeline *p = &it->state->pipe;
    const struct filter_shape *shape = &it->state->shape;
    const struct filter_groups *groups = it->groups;
    const char *tag = filter_tag(it->state, s);
    unsigned index = newest(it, s);
    struct bloom_layer layer = bloom_layer(&shape->shard, index);
    struct group group = {0};
    size_t n_groups = 0;
    struct key key;
    planned += it->state->shards[s].items[index];
    gather(it, s, index, &layer, planned < layer.capacity ? layer.capacity - planned : 0, at, ret);
    while (filter_groups_next(groups, GROUPS_BITS_MAX, &group)) {
        n_groups++;
    }
    bool grows = shape->expansion > 0 && index + 1 < BLOOM_LAYERS_MAX;
    script_head(&p->out, &p->reader->session.scripts, SCRIPT_FILTER_ADD, 1 + groups->n_strings,
        8 + 2 * n_groups + groups->n_bits + groups->n_bits / groups->run);
    key_filter_shard(&key, tag, shape->site, shape->name);
    resp_word(&p->out, key.p, key.n);
    for (size_t i = 0; i < groups->n_strings; i++) {
        key_filter_bits(&key, tag, shape->site, shape->name, shape->id, index, groups->strings[i]);
        resp_word(&p->out, key.p, key.n);
    }
    resp_decimal(&p->out, (int64_t)shape->id);
    resp_decimal(&p->out, index + 1);
    resp_decimal(&p->out, index);
    resp_decimal(&p->out, (int64_t)layer.capacity);
    resp_text(&p->out, grows ? "1" : "0");
    resp_decimal(&p->out, (int64_t)ret->n);
    resp_decimal(&p->out, strings_are_there(it, s, index, &layer) ? 0 : (int64_t)layer.string_bits);
    resp_decimal(&p->out, groups->run);
    for (group = (struct group){0}; filter_groups_next(groups, GROUPS_BITS_MAX, &group);) {
        resp_decimal(&p->out, (int64_t)group.string + 1);
        resp_decimal(&p->out, (int64_t)((group.to - group.from) / groups->run));
        for (size_t i = group.from; i < group.to; i++) {
            if ((i - group.from) % groups->run == 0) {
                resp_decimal(&p->out, groups->ordered[i].item + 1);
            }
            resp_decimal(&p->out, groups->ordered[i].bit);
        }
    }
    p->n++;
}

/* What filter_add.lua answers.  False: not that. */
static bool take_answers(
    struct items *it, const struct script_sent *sent, const struct reply *reply, bool *ret_gone)
{
    static const enum filter_answer digits[] = {FILTER_NO, FILTER_YES, FILTER_REFUSED};
    struct filter_shard *shard = &it->state->shards[sent->shard];
    if (reply->type != REPLY_ARRAY || reply->n != 2 || reply->items[1].type != REPLY_TEXT) {
        return false;
    }
    int64_t code = reply_integer(&reply->items[0], -1);
    struct slice text = reply->items[1].text;
    if (code == 2) {
        int64_t n = reply_integer(&reply->items[1], 0);
        shard->n = n < 1 || n > BLOOM_LAYERS_MAX ? shard->n : (unsigned)n;
        return true;
    }
    if (code == 3) {
        *ret_gone = true;
        return true;
    }
    if (code < 0 || text.n > sent->n) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '2') {
            return false;
        }
        it->job->answers[it->asked[sent->first + i]] = (unsigned char)digits[text.p[i] - '0'];
        shard->items[newest(it, sent->shard)] += text.p[i] == '1';
    }
    shard->n = shard->n == 0 ? 1 : shard->n;
    shard->n += code == 1 ? 1 : 0;
    return true;
}

/* One round: pending items are put into scripts.  Where a script may leave some pending, because a
 * layer's strings are not all there, it is the only one of its shard: items are added in their
 * order. *ret_any: there were some. */
static bool add_round(struct items *it, bool *ret_any, bool *ret_gone)
{
    struct pipeline *p = &it->state->pipe;
    struct script_sent *sent = calloc(it->job->n_items, sizeof(*sent));
    size_t n = 0;
    if (sent == NULL) {
        return items_no_memory(it->state);
    }
    it->n_asked = 0;
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        uint32_t at = it->first[s];
        uint64_t planned = 0;
        unsigned index = newest(it, s);
        struct bloom_layer layer = bloom_layer(&it->state->shape.shard, index);
        bool all = strings_are_there(it, s, index, &layer);
        for (bool more = true; more; more = all || layer.segments * layer.strings == 1) {
            while (at < it->first[s + 1] && !items_pending(it, it->order[at])) {
                at++;
            }
            if (at == it->first[s + 1]) {
                break;
            }
            write_script(it, s, planned, &at, &sent[n]);
            planned += sent[n++].n;
        }
    }
    bool ok = pipeline_send(p, true);
    for (size_t i = 0; ok && i < n; i++) {
        const struct reply *reply = pipeline_take(p);
        ok = reply != NULL && (take_answers(it, &sent[i], reply, ret_gone) || pipeline_foreign(p));
    }
    free(sent);
    *ret_any = n > 0;
    return ok;
}

/* Look into the layers that are full, and so never change; those from an earlier round are known.
 */
static bool probe_full(struct items *it, unsigned *known)
{
    unsigned full[PARTITIONS_MAX] = {0};
    bool ok = true;
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        full[s] = it->state->shards[s].n > 1 ? it->state->shards[s].n - 1 : 0;
        /* probed counts from the newest on: those below @known were looked into */
        it->probed[s] = 0;
    }
    for (bool any = true; ok && any;) {
        for (unsigned s = 0; s < it->state->shape.shards; s++) {
            if (full[s] - it->probed[s] <= known[s]) {
                it->probed[s] = full[s];
            }
        }
        ok = items_probe(it, full, FILTER_NO, &any);
    }
    memcpy(known, full, sizeof(full));
    return ok;
}

bool filter_add_items(struct filter_state *state, struct filter_job *job, bool *ret_gone)
{
    struct items it;
    unsigned known[PARTITIONS_MAX] = {0};
    bool ok = items_init(&it, state, job);
    for (bool any = true; ok && any && !*ret_gone;) {
        ok = probe_full(&it, known) && add_round(&it, &any, ret_gone);
    }
    items_release(&it);
    return ok;
}
