#include "storage/seen/bits.h"

#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define PLACES_MAX 4096 /* places of one round trip */
#define BITS_FIRST 3
#define FEW        8  /* of so few places all bits are read: a second round trip costs more */
#define MANY       64 /* with so many places in a string, reading it whole costs Redis less */

/* A layer of a month's filter.  Its figures take logarithms, so they are made once. */
struct month_layer {
    struct bloom_layer is;
    unsigned month, index;
};

/* A page in a layer. */
struct place {
    struct bloom_hash hash;
    uint32_t page;
    uint32_t layer; /* number of the layer among all months' layers */
    uint32_t segment;
    bool out;  /* a bit is unset */
    bool done; /* all bits were read */
};

/* One call of seen_bits_find(). */
struct look {
    const struct seen_bits *bits;
    struct pipeline *pipe;
    struct wanted *wanted;
    struct month_layer *layers; /* owned */
    size_t n_layers;
    uint32_t *pages; /* owned: numbers in wanted->pages of those that are looked at together */
    size_t n_pages;
    struct place *places; /* owned: places of these pages that may have all bits set */
    size_t n;
};

static const struct bloom_layer *layer_of(const struct look *look, const struct place *place)
{
    return &look->layers[place->layer].is;
}

static bool same_string(const struct place *a, const struct place *b)
{
    return a->layer == b->layer && a->segment == b->segment;
}

static int by_segment(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    return a->segment < b->segment ? -1 : a->segment > b->segment;
}

/* The number of layers of all months. */
static size_t count_layers(const struct seen_bits *bits)
{
    size_t n = 0;
    for (unsigned m = 0; m < bits->n_months; m++) {
        n += bits->filters[m].n;
    }
    return n;
}

static void make_layers(struct look *look)
{
    for (unsigned m = 0; m < look->bits->n_months; m++) {
        const struct seen_filter *filter = &look->bits->filters[m];
        for (unsigned i = 0; i < filter->n; i++) {
            look->layers[look->n_layers++] =
                (struct month_layer){bloom_layer(&filter->params, i), m, i};
        }
    }
}

/* The places of some pages, sorted by string: layer by layer, and most layers are one string. */
static void make_places(struct look *look)
{
    look->n = 0;
    for (uint32_t l = 0; l < look->n_layers; l++) {
        const struct bloom_layer *layer = &look->layers[l].is;
        size_t first = look->n;
        for (size_t i = 0; i < look->n_pages; i++) {
            struct bloom_hash hash = seen_hash(look->wanted->pages[look->pages[i]].fingerprint);
            look->places[look->n++] = (struct place){.hash = hash,
                .page = look->pages[i],
                .layer = l,
                .segment = (uint32_t)bloom_segment(layer, hash)};
        }
        if (layer->segments > 1) {
            qsort(look->places + first, look->n_pages, sizeof(*look->places), by_segment);
        }
    }
}

static bool has_bit(
    const struct bloom_layer *layer, struct slice string, struct bloom_hash hash, unsigned i)
{
    uint64_t bit = bloom_bit(layer, hash, i);
    return bit / 8 < string.n && ((unsigned char)string.p[bit / 8] >> bit % 8 & 1) != 0;
}

/* Are all bits of an item set in a string of Redis, which may be shorter than the layer?  About
 * half of all bits are set, which no processor can predict: so three bits are looked at before the
 * first branch. */
static bool has_item(const struct bloom_layer *layer, struct slice string, struct bloom_hash hash)
{
    unsigned i = 0;
    for (; i + 3 <= layer->hashes; i += 3) {
        if (!(has_bit(layer, string, hash, i) & has_bit(layer, string, hash, i + 1) &
                has_bit(layer, string, hash, i + 2))) {
            return false;
        }
    }
    for (; i < layer->hashes; i++) {
        if (!has_bit(layer, string, hash, i)) {
            return false;
        }
    }
    return true;
}

/* ---- whole strings ---- */

static struct slice key_of(const struct look *look, const struct place *place, struct key *key)
{
    const struct seen_bits *bits = look->bits;
    const struct month_layer *layer = &look->layers[place->layer];
    return key_seen_bits(
        key, bits->tag, bits->site, bits->months[layer->month], layer->index, place->segment);
}

/* Some places that lie in one string. */
struct places {
    struct look *look;
    struct place *all;
    size_t n;
};

/* How many places ahead the bits are prefetched, because they lie anywhere in 128 KiB. */
#define AHEAD 8

static void look_up(void *data, const void *string, size_t n)
{
    const struct places *places = data;
    const struct bloom_layer *layer = layer_of(places->look, places->all);
    for (size_t i = 0; i < places->n; i++) {
        struct place *place = &places->all[i];
        if (i + AHEAD < places->n) {
            uint64_t bit = bloom_bit(layer, place[AHEAD].hash, 0);
            __builtin_prefetch((const char *)string + bit / 8);
        }
        place->out = !has_item(layer, (struct slice){string, n}, place->hash);
        place->done = true;
    }
}

static const struct ver *ver_of(const struct look *look, const struct place *place)
{
    return &look->bits->filters[look->layers[place->layer].month].ver;
}

/* Look the places up in a string that is remembered.  Each step of a fold brings a new `ver`.  So a
 * string that is read after a `ver` has all bits of the filter that the `ver` stands for. */
static bool bits_recall(struct look *look, struct place *places, size_t n)
{
    struct key key;
    struct places some = {look, places, n};
    if (look->bits->cache == NULL) {
        return false;
    }
    struct slice name = key_of(look, places, &key);
    struct cache_id id = cache_id(look->bits->cache, name.p, name.n);
    return cache_get(look->bits->cache, &id, ver_of(look, places), look_up, &some);
}

static void bits_remember(struct look *look, const struct place *places, struct slice string)
{
    struct key key;
    if (look->bits->cache != NULL) {
        struct slice name = key_of(look, places, &key);
        struct cache_id id = cache_id(look->bits->cache, name.p, name.n);
        cache_put(look->bits->cache, &id, ver_of(look, places), string.p, string.n);
    }
}

static void ask_whole(struct look *look, const struct place *places)
{
    struct key key;
    struct buffer *out = pipeline_command(look->pipe, look->bits->partition, "GET", 1);
    resp_slice(out, key_of(look, places, &key));
}

static bool take_whole(struct look *look, struct place *places, size_t n)
{
    const struct reply *reply = pipeline_take(look->pipe);
    struct places some = {look, places, n};
    if (reply == NULL) {
        return false;
    }
    if (reply->type != REPLY_TEXT && reply->type != REPLY_NIL) {
        return pipeline_foreign(look->pipe, "a filter's key");
    }
    struct slice string = reply->type == REPLY_TEXT ? reply->text : SLICE("");
    look_up(&some, string.p, string.n);
    bits_remember(look, places, string);
    return true;
}

/* ---- single bits ---- */

/* The end of a place's bits up to @to: the layer may have fewer. */
static unsigned end_of(const struct bloom_layer *layer, unsigned to)
{
    return to < layer->hashes ? to : layer->hashes;
}

/* Ask for bits [@from, @to) of @n places, which lie in one string. */
static void ask_string(
    struct look *look, const struct place *places, size_t n, unsigned from, unsigned to)
{
    struct key key;
    const struct bloom_layer *layer = layer_of(look, places);
    unsigned end = end_of(layer, to);
    struct buffer *out = pipeline_command(
        look->pipe, look->bits->partition, "BITFIELD_RO", 1 + 3 * n * (end - from));
    resp_slice(out, key_of(look, places, &key));
    for (size_t i = 0; i < n; i++) {
        for (unsigned bit = from; bit < end; bit++) {
            resp_text(out, "GET");
            resp_text(out, "u1");
            resp_decimal(out, (int64_t)bloom_redis_bit(bloom_bit(layer, places[i].hash, bit)));
        }
    }
}

static bool take_string(
    struct look *look, struct place *places, size_t n, unsigned from, unsigned to)
{
    const struct reply *reply = pipeline_take(look->pipe);
    unsigned each = end_of(layer_of(look, places), to) - from;
    if (reply == NULL) {
        return false;
    }
    if (reply->type != REPLY_ARRAY || reply->n != n * each) {
        return pipeline_foreign(look->pipe, "a filter's key");
    }
    for (size_t i = 0; i < reply->n; i++) {
        places[i / each].out = places[i / each].out || reply->items[i].integer == 0;
    }
    return true;
}

/* How many places from @at on lie in the same string. */
static size_t string_at(const struct look *look, size_t at)
{
    size_t n = 1;
    while (at + n < look->n && same_string(&look->places[at], &look->places[at + n])) {
        n++;
    }
    return n;
}

/* Are bits from @from on to be read of the places in the string of place @at? */
static bool has_bits(const struct look *look, size_t at, unsigned from)
{
    return !look->places[at].done && layer_of(look, &look->places[at])->hashes > from;
}

/* Read bits [@from, @to) of all places, and drop those where one is unset. */
static bool read_places(struct look *look, unsigned from, unsigned to)
{
    size_t n;
    for (size_t at = 0; at < look->n; at += n) {
        n = string_at(look, at);
        if (!has_bits(look, at, from) || bits_recall(look, &look->places[at], n)) {
            continue;
        }
        if (n >= MANY) {
            ask_whole(look, &look->places[at]);
        } else {
            ask_string(look, &look->places[at], n, from, to);
        }
    }
    if (look->pipe->n > 0 && !pipeline_send(look->pipe, false)) {
        return false;
    }
    for (size_t at = 0; at < look->n; at += n) {
        n = string_at(look, at);
        struct place *places = &look->places[at];
        if (has_bits(look, at, from) &&
            !(n >= MANY ? take_whole(look, places, n) : take_string(look, places, n, from, to))) {
            return false;
        }
    }
    size_t left = 0;
    for (size_t at = 0; at < look->n; at++) {
        if (!look->places[at].out) {
            look->places[left++] = look->places[at];
        }
    }
    look->n = left;
    return true;
}

static bool look_at_pages(struct look *look)
{
    make_places(look);
    unsigned first = look->n <= FEW ? BLOOM_HASHES_MAX : BITS_FIRST;
    if (!read_places(look, 0, first) || !read_places(look, first, BLOOM_HASHES_MAX)) {
        return false;
    }
    for (size_t at = 0; at < look->n; at++) {
        wanted_find(look->wanted, look->places[at].page);
    }
    look->n_pages = 0;
    return true;
}

/* Look at all pages that are not found, up to @most at a time. */
static bool look_at_all(struct look *look, size_t most)
{
    struct wanted *wanted = look->wanted;
    bool ok = true;
    for (size_t i = 0; ok && i < wanted->n && !(look->bits->any && wanted->n_found > 0); i++) {
        if (wanted->pages[i].first == i && !wanted->pages[i].found) {
            look->pages[look->n_pages++] = (uint32_t)i;
        }
        if (look->n_pages == most) {
            ok = look_at_pages(look);
        }
    }
    return ok && (look->n_pages == 0 || look_at_pages(look));
}

bool seen_bits_find(const struct seen_bits *bits, struct pipeline *pipe, struct wanted *wanted)
{
    size_t each = count_layers(bits);
    struct look look = {.bits = bits, .pipe = pipe, .wanted = wanted};
    if (each == 0) {
        return true;
    }
    size_t most = each < PLACES_MAX ? PLACES_MAX / each : 1;
    look.layers = malloc(each * sizeof(*look.layers));
    look.pages = malloc(most * sizeof(*look.pages));
    look.places = malloc(most * each * sizeof(*look.places));
    bool ok = false;
    if (look.layers == NULL || look.pages == NULL || look.places == NULL) {
        (void)pipeline_fail(pipe, STORAGE_NOMEM);
    } else {
        make_layers(&look);
        ok = look_at_all(&look, most);
    }
    free(look.layers);
    free(look.pages);
    free(look.places);
    return ok;
}
