#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "storage/filter_ops.h"

/* Bits that one script sets at most, about 2 ms: those of an item at once, or one by one. */
#define BITS_A_SCRIPT     4000
#define BITS_ONE_BY_ONE   2000

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
    unsigned *commands;              /* that each of them was asked with */
    size_t n_asked;
};

static bool items_init(struct items *it, struct filter_state *state, struct filter_job *job)
{
    *it = (struct items){.state = state, .job = job};
    it->hashes = calloc(job->n_items, sizeof(*it->hashes));
    it->order = calloc(job->n_items, sizeof(*it->order));
    it->asked = calloc(job->n_items, sizeof(*it->asked));
    it->commands = calloc(job->n_items, sizeof(*it->commands));
    if (it->hashes == NULL || it->order == NULL || it->asked == NULL || it->commands == NULL) {
        if (state->pipe.err == STORAGE_OK) {
            state->pipe.err = state->pipe.applied ? STORAGE_UNKNOWN : STORAGE_NOMEM;
        }
        return false;
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

static void items_release(struct items *it)
{
    free(it->hashes);
    free(it->order);
    free(it->asked);
    free(it->commands);
}

static bool is_pending(const struct items *it, uint32_t item)
{
    return it->job->answers[item] == FILTER_PENDING;
}

/* ---- looking into a layer ---- */

/* The bits of an item, of @n, that are in one string. */
static void ask_string(struct items *it, unsigned shard, unsigned index,
    const struct bloom_place *places, unsigned n, uint64_t string)
{
    struct pipeline *p = &it->state->pipe;
    struct key key;
    size_t here = 0;
    for (unsigned i = 0; i < n; i++) {
        here += places[i].string == string;
    }
    key_filter_bits(&key, filter_tag(it->state, shard), it->state->shape.site,
        it->state->shape.name, it->state->shape.id, index, string);
    resp_head(&p->out, 2 + 3 * here);
    resp_text(&p->out, "BITFIELD_RO");
    resp_word(&p->out, key.p, key.n);
    for (unsigned i = 0; i < n; i++) {
        if (places[i].string == string) {
            resp_text(&p->out, "GET");
            resp_text(&p->out, "u1");
            resp_decimal(&p->out, (int64_t)places[i].bit);
        }
    }
    p->n++;
}

/* A command for each string that has bits of the item: most often there is one. */
static void ask_bits(struct items *it, unsigned shard, unsigned index,
    const struct bloom_layer *layer, uint32_t item)
{
    struct bloom_place places[BLOOM_HASHES_MAX];
    unsigned commands = 0;
    for (unsigned i = 0; i < layer->hashes; i++) {
        places[i] = bloom_place(layer, it->hashes[item], i);
    }
    for (unsigned i = 0; i < layer->hashes; i++) {
        unsigned first = 0;
        while (places[first].string != places[i].string) {
            first++;
        }
        if (first == i) {
            ask_string(it, shard, index, places, layer->hashes, places[i].string);
            commands++;
        }
    }
    it->asked[it->n_asked] = item;
    it->commands[it->n_asked++] = commands;
}

/* Are all bits set? */
static bool all_set(const struct reply *bits)
{
    for (size_t i = 0; i < bits->n; i++) {
        if (bits->items[i].integer == 0) {
            return false;
        }
    }
    return true;
}

/* Look for all pending items in one layer of each shard: the newest of its first @layers[s] that
 * was not looked into yet.  Those found are answered @found.  *ret_any: some layer was asked. */
static bool probe(struct items *it, const unsigned *layers, enum filter_answer found, bool *ret_any)
{
    struct pipeline *p = &it->state->pipe;
    it->n_asked = 0;
    *ret_any = false;
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        if (it->probed[s] >= layers[s]) {
            continue;
        }
        unsigned index = layers[s] - ++it->probed[s];
        struct bloom_layer layer = bloom_layer(&it->state->shape.shard, index);
        *ret_any = true;
        for (uint32_t i = it->first[s]; i < it->first[s + 1]; i++) {
            if (is_pending(it, it->order[i])) {
                ask_bits(it, s, index, &layer, it->order[i]);
            }
        }
    }
    if (!pipeline_send(p, false)) {
        return false;
    }
    for (size_t i = 0; i < it->n_asked; i++) {
        bool all = true;
        for (unsigned command = 0; command < it->commands[i]; command++) {
            const struct reply *bits = pipeline_take(p);
            if (bits == NULL) {
                return false;
            }
            if (bits->type != REPLY_ARRAY) {
                return pipeline_foreign(p);
            }
            all = all_set(bits) && all;
        }
        if (all) {
            it->job->answers[it->asked[i]] = (unsigned char)found;
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
        ok = probe(&it, layers, FILTER_YES, &any);
    }
    items_release(&it);
    for (size_t i = 0; ok && i < job->n_items; i++) {
        if (job->answers[i] == FILTER_PENDING) {
            job->answers[i] = FILTER_NO;
        }
    }
    return ok;
}

/* ---- adding ---- */

/* A script under way: items asked[first .. first + n) of a shard. */
struct script_sent {
    unsigned shard;
    size_t first, n;
};

/* The strings that a script's items lie in: KEYS behind the first. */
struct strings {
    uint64_t strings[256];
    size_t n;
};

/* Its number from 1; 0: no room. */
static size_t string_number(struct strings *strings, uint64_t string)
{
    for (size_t i = 0; i < strings->n; i++) {
        if (strings->strings[i] == string) {
            return i + 1;
        }
    }
    if (strings->n == sizeof(strings->strings) / sizeof(strings->strings[0])) {
        return 0;
    }
    strings->strings[strings->n++] = string;
    return strings->n;
}

/* Is there room for all that the item needs? */
static bool add_strings(
    struct strings *strings, const struct bloom_layer *layer, struct bloom_hash hash)
{
    bool room = true;
    for (unsigned i = 0; room && i < (layer->strings == 1 ? 1 : layer->hashes); i++) {
        room = string_number(strings, bloom_place(layer, hash, i).string) != 0;
    }
    return room;
}

/* An item as filter_add.lua takes it. */
static void write_item(struct buffer *out, struct strings *strings,
    const struct bloom_layer *layer, struct bloom_hash hash)
{
    for (unsigned i = 0; i < layer->hashes; i++) {
        struct bloom_place place = bloom_place(layer, hash, i);
        if (i == 0 || layer->strings > 1) {
            resp_decimal(out, (int64_t)string_number(strings, place.string));
        }
        resp_decimal(out, (int64_t)place.bit);
    }
}

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

/* Write a script with the pending items of shard @s from order[*at] on, as many as fit. */
static void write_script(struct items *it, unsigned s, uint32_t *at, struct script_sent *ret)
{
    struct pipeline *p = &it->state->pipe;
    const struct filter_shape *shape = &it->state->shape;
    unsigned index = newest(it, s);
    struct bloom_layer layer = bloom_layer(&shape->shard, index);
    const char *tag = filter_tag(it->state, s);
    struct strings strings = {.n = 0};
    struct key key;
    size_t most = (layer.strings == 1 ? BITS_A_SCRIPT : BITS_ONE_BY_ONE) / layer.hashes;
    size_t fit = items_that_fit(it, s, index, &layer);
    size_t words = layer.hashes + (layer.strings == 1 ? 1 : layer.hashes);
    *ret = (struct script_sent){.shard = s, .first = it->n_asked};
    for (; *at < it->first[s + 1] && ret->n < most && ret->n < fit; (*at)++) {
        uint32_t item = it->order[*at];
        if (!is_pending(it, item)) {
            continue;
        }
        if (!add_strings(&strings, &layer, it->hashes[item])) {
            break;
        }
        it->asked[it->n_asked++] = item;
        ret->n++;
    }
    bool grows = shape->expansion > 0 && index + 1 < BLOOM_LAYERS_MAX;
    script_head(&p->out, &p->reader->session.scripts, SCRIPT_FILTER_ADD, 1 + strings.n,
        9 + ret->n * words);
    key_filter_shard(&key, tag, shape->site, shape->name);
    resp_word(&p->out, key.p, key.n);
    for (size_t i = 0; i < strings.n; i++) {
        key_filter_bits(&key, tag, shape->site, shape->name, shape->id, index, strings.strings[i]);
        resp_word(&p->out, key.p, key.n);
    }
    resp_decimal(&p->out, (int64_t)shape->id);
    resp_decimal(&p->out, index + 1);
    resp_decimal(&p->out, index);
    resp_decimal(&p->out, (int64_t)layer.capacity);
    resp_text(&p->out, grows ? "1" : "0");
    resp_decimal(&p->out, layer.hashes);
    resp_decimal(&p->out, (int64_t)ret->n);
    resp_decimal(&p->out, strings_are_there(it, s, index, &layer) ? 0 : (int64_t)layer.string_bits);
    resp_decimal(&p->out, layer.strings > 1);
    for (size_t i = 0; i < ret->n; i++) {
        write_item(&p->out, &strings, &layer, it->hashes[it->asked[ret->first + i]]);
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
 * layer's strings are not all there, it is the only one of its shard: items are added in their order.
 * *ret_any: there were some. */
static bool add_round(struct items *it, bool *ret_any, bool *ret_gone)
{
    struct pipeline *p = &it->state->pipe;
    struct script_sent *sent = calloc(it->job->n_items, sizeof(*sent));
    size_t n = 0;
    if (sent == NULL) {
        p->err = p->applied ? STORAGE_UNKNOWN : STORAGE_NOMEM;
        return false;
    }
    it->n_asked = 0;
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        uint32_t at = it->first[s];
        unsigned index = newest(it, s);
        struct bloom_layer layer = bloom_layer(&it->state->shape.shard, index);
        bool all = strings_are_there(it, s, index, &layer);
        for (bool more = true; more; more = all || layer.segments * layer.strings == 1) {
            while (at < it->first[s + 1] && !is_pending(it, it->order[at])) {
                at++;
            }
            if (at == it->first[s + 1]) {
                break;
            }
            write_script(it, s, &at, &sent[n++]);
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
        ok = probe(it, full, FILTER_NO, &any);
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
