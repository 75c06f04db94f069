#include "storage/sketch/bloom.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(bloom, .timeout = 60);

static struct bloom_params params(double error, uint64_t capacity, unsigned expansion)
{
    return (struct bloom_params){.rules = BLOOM_REDISBLOOM,
        .capacity = capacity,
        .error = error,
        .expansion = expansion,
        .segment_bits = BLOOM_SEGMENT_BITS};
}

/* A filter in memory, by the rules of the header: what RedisBloom's figures are compared with. */
struct filter {
    struct bloom_params params;
    unsigned n;
    uint64_t size[BLOOM_LAYERS_MAX];
    unsigned char *bits[BLOOM_LAYERS_MAX];
};

static void grow(struct filter *f)
{
    struct bloom_layer layer = bloom_layer(&f->params, f->n);
    f->bits[f->n] = calloc(1, layer.bits / 8);
    f->size[f->n++] = 0;
}

static bool has(const struct filter *f, struct bloom_hash hash)
{
    for (unsigned l = f->n; l-- > 0;) {
        struct bloom_layer layer = bloom_layer(&f->params, l);
        unsigned set = 0;
        for (unsigned i = 0; i < layer.hashes; i++) {
            uint64_t bit = bloom_bit(&layer, hash, i);
            set += f->bits[l][bit / 8] >> (bit % 8) & 1;
        }
        if (set == layer.hashes) {
            return true;
        }
    }
    return false;
}

static bool add(struct filter *f, struct slice item)
{
    struct bloom_hash hash = bloom_hash(item);
    if (f->n == 0) {
        grow(f);
    }
    if (has(f, hash)) {
        return false;
    }
    if (f->size[f->n - 1] >= bloom_layer(&f->params, f->n - 1).capacity) {
        grow(f);
    }
    struct bloom_layer layer = bloom_layer(&f->params, f->n - 1);
    for (unsigned i = 0; i < layer.hashes; i++) {
        uint64_t bit = bloom_bit(&layer, hash, i);
        f->bits[f->n - 1][bit / 8] |= (unsigned char)(1u << (bit % 8));
    }
    f->size[f->n - 1]++;
    return true;
}

static uint64_t add_numbers(struct filter *f, unsigned from, unsigned to)
{
    uint64_t added = 0;
    for (unsigned i = from; i < to; i++) {
        char text[16];
        int n = snprintf(text, sizeof(text), "%u", i);
        added += add(f, (struct slice){text, (size_t)n}) ? 1 : 0;
    }
    return added;
}

static void release(struct filter *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        free(f->bits[i]);
    }
}

/* ---- vectors: RedisBloom's own figures ---- */

Test(bloom, hashes)
{
    static const struct {
        const char *item;
        uint64_t a, b;
    } cases[] = {
        {"foo", UINT64_C(0x822b4f99b121f10d), UINT64_C(0x9d63d52a557f61c2)},
        {"bar", UINT64_C(0x6a8386c4397296e3), UINT64_C(0x7d8d22475d9ccdf0)},
        {"", UINT64_C(0x1ab11ea5a7b2c56e), UINT64_C(0xbbddcb5ab56dd547)},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bloom_hash hash = bloom_hash(slice_of(cases[i].item));
        cr_expect_eq(hash.a, cases[i].a, "%s: a is %016" PRIx64, cases[i].item, hash.a);
        cr_expect_eq(hash.b, cases[i].b, "%s: b is %016" PRIx64, cases[i].item, hash.b);
    }
}

Test(bloom, bits_of_an_item)
{
    static const uint64_t foo[] = {13, 79, 17, 83, 21, 87, 25, 91};
    static const uint64_t bar[] = {99, 83, 67, 51, 35, 19, 3, 115};
    struct bloom_params p = params(0.01, 10, 2);
    struct bloom_layer layer = bloom_layer(&p, 0);
    cr_assert_eq(layer.hashes, 8);
    for (unsigned i = 0; i < 8; i++) {
        cr_expect_eq(bloom_bit(&layer, bloom_hash(SLICE("foo")), i), foo[i]);
        cr_expect_eq(bloom_bit(&layer, bloom_hash(SLICE("bar")), i), bar[i]);
    }
}

Test(bloom, bits_as_redis_counts_them)
{
    cr_expect_eq(bloom_redis_bit(0), 7);
    cr_expect_eq(bloom_redis_bit(7), 0);
    cr_expect_eq(bloom_redis_bit(13), 10);
    for (uint64_t bit = 0; bit < 64; bit++) {
        cr_expect_eq(bloom_redis_bit(bloom_redis_bit(bit)), bit);
        cr_expect_eq(bloom_redis_bit(bit) / 8, bit / 8);
    }
}

static const struct figures {
    double error;
    uint64_t capacity;
    unsigned expansion, index;
    uint64_t bytes, bits;
    unsigned hashes;
    uint64_t layer_capacity;
} figures[] = {
    {0.01, 10, 2, 0, 16, 128, 8, 10}, {0.01, 10, 2, 1, 32, 256, 9, 20},
    {0.01, 10, 2, 2, 72, 576, 10, 40}, {0.01, 10, 2, 3, 160, 1280, 11, 80},
    {0.001, 100, 2, 0, 200, 1600, 11, 100}, {0.001, 100, 2, 1, 432, 3456, 12, 200},
    {0.001, 100, 2, 2, 936, 7488, 13, 400}, {0.001, 100, 2, 3, 2016, 16128, 14, 800},
    {0.001, 100, 2, 4, 4320, 34560, 15, 1600}, {0.001, 100, 2, 5, 9216, 73728, 16, 3200},
    {0.001, 50000, 2, 0, 98880, 791040, 11, 50000},
    {0.01, 3, 0, 0, 8, 64, 7, 3}, /* BF.INSERT CAPACITY 3 NONSCALING: size 104 = 32 + 64 + 8 */
};

Test(bloom, layers)
{
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        const struct figures *f = &figures[i];
        struct bloom_params p = params(f->error, f->capacity, f->expansion);
        struct bloom_layer layer = bloom_layer(&p, f->index);
        cr_expect_eq(layer.bits, f->bits, "%zu: %" PRIu64 " bits", i, layer.bits);
        cr_expect_eq(layer.bits / 8, f->bytes);
        cr_expect_eq(layer.hashes, f->hashes, "%zu: %u hashes", i, layer.hashes);
        cr_expect_eq(layer.capacity, f->layer_capacity);
        cr_expect_eq(layer.segments, 1);
    }
}

/* RESERVE 0.000001 300000000: Size 1132420232 = 32 + 64 + bytes.  Uncut here, as there. */
Test(bloom, a_large_layer)
{
    struct bloom_params p = params(0.000001, 300000000, 2);
    p.segment_bits = UINT64_C(1) << 40;
    cr_expect_eq(bloom_layer(&p, 0).bits / 8, UINT64_C(1132420232) - 96);
}

Test(bloom, bits_per_item)
{
    static const struct {
        double error, bits;
        unsigned hashes;
    } cases[] = {{0.01, 9.585, 7}, {0.005, 11.028, 8}, {0.001, 14.378, 10}, {0.0005, 15.820, 11},
        {0.0001, 19.170, 14}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bloom_params p = params(cases[i].error, 1000000, 0);
        struct bloom_layer layer = bloom_layer(&p, 0);
        cr_expect_float_eq((double)layer.bits / 1e6, cases[i].bits, 0.001);
        cr_expect_eq(layer.hashes, cases[i].hashes);
    }
}

static void check_numbers(double error, uint64_t capacity, unsigned expansion, unsigned items,
    uint64_t card, unsigned layers, uint64_t newest_size)
{
    struct filter f = {.params = params(error, capacity, expansion)};
    cr_expect_eq(add_numbers(&f, 0, items), card);
    cr_expect_eq(f.n, layers);
    cr_expect_eq(f.size[f.n - 1], newest_size);
    cr_expect_eq(add_numbers(&f, 0, items), 0, "what is in is not new");
    release(&f);
}

Test(bloom, numbers_as_redisbloom_counts_them)
{
    check_numbers(0.01, 10, 2, 100, 99, 4, 29);
    check_numbers(0.001, 100, 2, 4000, 3997, 6, 897);
}

Test(bloom, layers_by_expansion)
{
    static const unsigned expansions[] = {1, 2, 4}, layers[] = {23, 5, 4};
    for (size_t i = 0; i < 3; i++) {
        struct filter f = {.params = params(0.01, 4, expansions[i])};
        (void)add_numbers(&f, 0, 100);
        cr_expect_eq(f.n, layers[i], "expansion %u: %u layers", expansions[i], f.n);
        release(&f);
    }
}

/* ---- what is ours ---- */

Test(bloom, segments)
{
    struct bloom_params p = params(0.01, BLOOM_CAPACITY_MAX, 2);
    for (unsigned i = 0; i < 8; i++) {
        struct bloom_layer layer = bloom_layer(&p, i);
        cr_expect_eq(layer.capacity, BLOOM_CAPACITY_MAX);
        cr_expect_leq(layer.bits, p.segment_bits);
        cr_expect_geq((double)layer.bits * (double)layer.segments,
            (double)layer.capacity * -log(layer.error) / (log(2) * log(2)));
    }
    struct bloom_params edge = params(0.01, 3501000, 0);
    cr_expect_gt(bloom_layer(&edge, 0).segments, 1);
    edge.capacity = 3500000;
    cr_expect_eq(bloom_layer(&edge, 0).segments, 1);
}

/* For one byte more than a segment may have, the allocator takes a quarter more.  Items that just
 * fill some segments are the worst. */
Test(bloom, no_segment_is_longer_than_it_may_be)
{
    static const enum bloom_rules rules[] = {BLOOM_REDISBLOOM, BLOOM_OWN};
    for (size_t r = 0; r < 2; r++) {
        for (uint64_t capacity = 100000; capacity < 2000000; capacity += 97) {
            struct bloom_params p = params(0.01, capacity, 0);
            p.rules = rules[r];
            p.segment_bits = BLOOM_STRING_BITS(128 << 10);
            struct bloom_layer layer = bloom_layer(&p, 0);
            cr_assert(layer.segments == 1 || layer.bits <= p.segment_bits, "%zu items by rules %u",
                (size_t)capacity, (unsigned)rules[r]);
        }
    }
}

Test(bloom, items_fall_evenly_into_segments)
{
    struct bloom_params p = params(0.01, 1000, 0);
    p.segment_bits = 1024;
    struct bloom_layer layer = bloom_layer(&p, 0);
    unsigned hits[16] = {0};
    cr_assert(layer.segments > 8 && layer.segments <= 16);
    for (unsigned i = 0; i < 100000; i++) {
        struct bloom_hash hash = bloom_hash((struct slice){(const char *)&i, sizeof(i)});
        uint64_t segment = bloom_segment(&layer, hash);
        cr_assert_lt(segment, layer.segments);
        hits[segment]++;
    }
    for (unsigned i = 0; i < layer.segments; i++) {
        cr_expect_float_eq((double)hits[i], 1e5 / (double)layer.segments, 600);
    }
}

Test(bloom, most_hashes)
{
    struct bloom_params p = params(BLOOM_ERROR_MIN, 1, 2);
    cr_expect_leq(bloom_layer(&p, BLOOM_LAYERS_MAX - 1).hashes, BLOOM_HASHES_MAX);
    cr_expect_leq(bloom_layer(&p, BLOOM_LAYERS_MAX - 1).capacity, BLOOM_CAPACITY_MAX);
    cr_expect_eq(bloom_layer(&p, BLOOM_LAYERS_MAX - 2).capacity, BLOOM_CAPACITY_MAX);
}

Test(bloom, expected_rates)
{
    static const double errors[] = {0.1, 0.01, 0.001};
    for (size_t i = 0; i < 3; i++) {
        struct bloom_params p = params(errors[i], 100000, 0);
        struct bloom_layer layer = bloom_layer(&p, 0);
        cr_expect_float_eq(bloom_fill(&layer, 100000), 0.5, 0.07);
        cr_expect_float_eq(
            bloom_false_positives(&layer, 100000) / errors[i], 1, 0.06, "at capacity");
        double overloaded = pow(1 - pow(1 - bloom_fill(&layer, 100000), 2), layer.hashes);
        cr_expect_float_eq(bloom_false_positives(&layer, 200000), overloaded, 1e-9);
        cr_expect_eq(bloom_false_positives(&layer, 0), 0);
        double hardly = bloom_false_positives(&layer, 10);
        cr_expect(hardly > 0 && bloom_either(0, hardly) == hardly, "%g", hardly);
    }
    cr_expect_eq(bloom_either(0.5, 0.5), 0.75, "both may be wrong at once");
}

/* Ten times as many probes as items: no false no, and as few false yeses as promised. */
Test(bloom, measured_rates)
{
    static const double errors[] = {0.1, 0.01, 0.001, 0.0001};
    for (size_t i = 0; i < 4; i++) {
        struct filter f = {.params = params(errors[i], 8192, 2)};
        (void)add_numbers(&f, 0, 4 * 8192);
        unsigned yes = 0;
        for (unsigned n = 0; n < 11 * 32768; n++) {
            char text[16];
            int len = snprintf(text, sizeof(text), "%u", n);
            bool is = has(&f, bloom_hash((struct slice){text, (size_t)len}));
            cr_assert(is || n >= 32768, "%u is missing", n);
            yes += is && n >= 32768 ? 1 : 0;
        }
        cr_expect_leq((double)yes / 327680, errors[i], "%g: %u", errors[i], yes);
        release(&f);
    }
}
