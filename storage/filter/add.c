/* add.c - adds items to a named filter, in scripts that hold Redis for a moment each. */
#include <math.h>

#include "storage/filter/items.h"
#include "storage/redis/resp.h"

/* Bits that one script sets at most: a ms or two of Redis.  To zero a new string of
 * BLOOM_SEGMENT_BITS takes as long (measured: 1.2 and 1.6 ms; 0.1 for 256 KiB). */
#define BITS_A_SCRIPT 2000
#define STRINGS_MAX   256 /* strings of one script */

/* The number of a shard's newest layer, from 0. */
static unsigned newest(const struct items *it, unsigned s)
{
    unsigned n = it->state->shards[s].n;
    return n == 0 ? 0 : n - 1;
}

/* Has each of the layer's strings been made?  With 32 items for each string a given one is missing
 * only once in e^32 times, and to ask Redis for each would cost a tenth of an add. */
static bool strings_are_there(
    const struct items *it, unsigned s, unsigned index, const struct bloom_layer *layer)
{
    return it->state->shards[s].items[index] >= (layer->segments == 1 ? 1 : 32 * layer->segments);
}

/* How many items may go into a script.  Only the @first script of a shard in a round may have to
 * make a string: later scripts find the layer's only string there.  The longer a string that a
 * script may have to make, the fewer items go into the script. */
static size_t items_that_fit(
    const struct items *it, unsigned s, unsigned index, const struct bloom_layer *layer, bool first)
{
    double bits = BITS_A_SCRIPT;
    double items = FILTER_ITEMS_MAX;
    if (first && !strings_are_there(it, s, index, layer)) {
        bits *= 1 - (double)layer->bits / BLOOM_SEGMENT_BITS;
        if (layer->segments > 1) {
            /* The script ends at the second new string, and the items behind that come back. */
            double in = (double)it->state->shards[s].items[index];
            items = 2 * exp(in / (double)layer->segments) + 2;
        }
    }
    return (size_t)fmax(1, fmin(bits / layer->hashes, items));
}

/* The strings of a script, by first use: their segments in the layer. */
struct strings {
    size_t n;
    uint64_t segments[STRINGS_MAX];
};

/* The number of the string of @segment, which is added if it is new.  STRINGS_MAX: no room. */
static uint32_t string_number(struct strings *strings, uint64_t segment)
{
    uint32_t i = 0;
    while (i < strings->n && strings->segments[i] != segment) {
        i++;
    }
    if (i == strings->n && i < STRINGS_MAX) {
        strings->segments[strings->n++] = segment;
    }
    return i;
}

/* Put as many pending items of shard @s, from order[*at] on, into asked as fit into a script. */
static void gather(struct items *it, unsigned s, unsigned index, const struct bloom_layer *layer,
    bool first, uint32_t *at, struct items_sent *ret, struct strings *strings)
{
    size_t most = items_that_fit(it, s, index, layer, first);
    *ret = (struct items_sent){s, layer->hashes, it->n_asked, 0};
    strings->n = 0;
    for (; *at < it->first[s + 1] && ret->n < most; (*at)++) {
        uint32_t item = it->order[*at];
        if (!items_pending(it, item)) {
            continue;
        }
        uint32_t string = string_number(strings, bloom_segment(layer, it->hashes[item]));
        if (string == STRINGS_MAX) {
            break;
        }
        it->asked[it->n_asked++] = (struct items_asked){item, string};
        ret->n++;
    }
}

/* Write a script with as many pending items of shard @s, from order[*at] on, as fit.  @first: it is
 * the shard's first of the round. */
static void write_script(struct items *it, unsigned s, bool first, uint32_t *at)
{
    struct pipeline *p = &it->state->pipe;
    const struct filter_shape *shape = &it->state->shape;
    const char *tag = filter_tag(it->state, s);
    unsigned index = newest(it, s);
    struct bloom_layer layer = bloom_layer(&shape->shard, index);
    struct items_sent *sent = &it->sent[it->n_sent++];
    bool grows = shape->expansion > 0 && index + 1 < BLOOM_LAYERS_MAX;
    struct strings strings;
    struct key key;
    gather(it, s, index, &layer, first, at, sent, &strings);
    struct buffer *out = pipeline_script(p, filter_place(it->state, s), SCRIPT_FILTER_ADD,
        1 + strings.n, 8 + sent->n * (1 + layer.hashes));
    resp_slice(out, key_filter_shard(&key, tag, shape->site, shape->name));
    for (size_t i = 0; i < strings.n; i++) {
        resp_slice(out, key_filter_bits(&key, tag, shape->site, shape->name, shape->id, index,
                            strings.segments[i]));
    }
    resp_decimal(out, (int64_t)shape->id);
    resp_decimal(out, index + 1);
    resp_decimal(out, index);
    resp_decimal(out, (int64_t)layer.capacity);
    resp_text(out, grows ? "1" : "0");
    resp_decimal(out, layer.hashes);
    resp_decimal(out, (int64_t)sent->n);
    resp_decimal(out, strings_are_there(it, s, index, &layer) ? 0 : (int64_t)layer.bits);
    for (size_t i = 0; i < sent->n; i++) {
        const struct items_asked *asked = &it->asked[sent->first + i];
        resp_decimal(out, asked->string + 1);
        for (unsigned bit = 0; bit < layer.hashes; bit++) {
            resp_decimal(out, items_bit(it, &layer, asked->item, bit));
        }
    }
}

/* The codes of filter_add.lua. */
enum add_code {
    ADD_DONE,
    ADD_GROWN, /* the items were added, and the shard has got one more layer */
    ADD_STALE, /* nothing was done: the shard has got layers that we do not know of; the text is n
                */
    ADD_GONE,  /* nothing was done: the filter was deleted */
};

/* Take what filter_add.lua answers.  False: the reply has another form. */
static bool take_answers(
    struct items *it, const struct items_sent *sent, const struct reply *reply, bool *ret_gone)
{
    static const enum filter_answer digits[] = {FILTER_NO, FILTER_YES, FILTER_REFUSED};
    struct filter_shard *shard = &it->state->shards[sent->shard];
    if (reply->type != REPLY_ARRAY || reply->n != 2 || reply->items[1].type != REPLY_TEXT) {
        return false;
    }
    int64_t code = reply_integer(&reply->items[0], -1);
    struct slice text = reply->items[1].text;
    if (code == ADD_STALE) {
        int64_t n = reply_integer(&reply->items[1], 0);
        shard->n = n < 1 || n > BLOOM_LAYERS_MAX ? shard->n : (unsigned)n;
        return true;
    }
    if (code == ADD_GONE) {
        *ret_gone = true;
        return true;
    }
    if ((code != ADD_DONE && code != ADD_GROWN) || text.n > sent->n) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '2') {
            return false;
        }
        it->job->answers[it->asked[sent->first + i].item] = (unsigned char)digits[text.p[i] - '0'];
        shard->items[newest(it, sent->shard)] += text.p[i] == '1';
    }
    shard->n = shard->n == 0 ? 1 : shard->n;
    shard->n += code == ADD_GROWN ? 1 : 0;
    return true;
}

/* One round: pending items are put into scripts.  A script may leave items pending, where the
 * strings of the layer are not all there.  Then it is the only one of its shard, because items are
 * added in their order.  *ret_any: there were pending items. */
static bool add_round(struct items *it, bool *ret_any, bool *ret_gone)
{
    struct pipeline *p = &it->state->pipe;
    it->n_asked = 0;
    it->n_sent = 0;
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        uint32_t at = it->first[s];
        unsigned index = newest(it, s);
        struct bloom_layer layer = bloom_layer(&it->state->shape.shard, index);
        bool all = layer.segments == 1 || strings_are_there(it, s, index, &layer);
        for (bool first = true; first || all; first = false) {
            while (at < it->first[s + 1] && !items_pending(it, it->order[at])) {
                at++;
            }
            if (at == it->first[s + 1]) {
                break;
            }
            write_script(it, s, first, &at);
        }
    }
    bool ok = pipeline_send(p, true);
    for (size_t i = 0; ok && i < it->n_sent; i++) {
        const struct reply *reply = pipeline_take(p);
        ok = reply != NULL &&
             (take_answers(it, &it->sent[i], reply, ret_gone) || pipeline_foreign(p, FILTER_KEY));
    }
    *ret_any = it->n_sent > 0;
    return ok;
}

/* Look into the layers that are full, and so never change; those of an earlier round are known. */
static bool probe_full(struct items *it)
{
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        it->next[s] = newest(it, s);
    }
    bool ok = items_probe(it, FILTER_NO);
    for (unsigned s = 0; s < it->state->shape.shards; s++) {
        it->known[s] = newest(it, s);
    }
    return ok;
}

bool filter_add_items(struct filter_state *state, struct filter_job *job, bool *ret_gone)
{
    struct items it;
    bool ok = items_init(&it, state, job);
    for (bool any = true; ok && any && !*ret_gone;) {
        ok = probe_full(&it) && add_round(&it, &any, ret_gone);
    }
    items_release(&it);
    return ok;
}
