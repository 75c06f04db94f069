#include "storage/filter/shape.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

TestSuite(filter_shape, .timeout = 60);

static struct partitions parts(unsigned n)
{
    struct partitions p;
    partitions_make(n, &p);
    return p;
}

static struct reply text(const char *value)
{
    return (struct reply){
        .type = value == NULL ? REPLY_NIL : REPLY_TEXT, .text = slice_of(value ? value : "")};
}

/* A shape as Redis would tell it. */
static bool read_with(const char *rules, struct filter_shape *shape, const char *id,
    const char *capacity, const char *error, const char *expansion, const char *shards,
    const char *drop)
{
    struct reply items[] = {text(id), text(capacity), text(error), text(expansion), text(shards),
        text(drop), text(rules)};
    struct reply fields = {.type = REPLY_ARRAY, .items = items, .n = FILTER_HOME_FIELDS};
    struct partitions p = parts(16);
    filter_shape_init(shape, SLICE("s"), SLICE("f"), &p);
    return filter_shape_read(shape, &fields);
}

static bool read(struct filter_shape *shape, const char *id, const char *capacity,
    const char *error, const char *expansion, const char *shards, const char *drop)
{
    return read_with(NULL, shape, id, capacity, error, expansion, shards, drop);
}

static void check_layout(uint64_t capacity, double error, unsigned expansion, unsigned n,
    unsigned shards, enum filter_rules rules)
{
    struct partitions p = parts(n);
    struct filter_layout layout = filter_layout(capacity, error, expansion, &p);
    cr_expect_eq(layout.shards, shards, "%g, %u: %u shards", error, expansion, layout.shards);
    cr_expect_eq(layout.rules, rules, "%g, %u: rules %d", error, expansion, (int)layout.rules);
}

/* Half of the error (a filter that grows): more bits. */
Test(filter_shape, small_filters_have_one_shard)
{
    check_layout(1, 0.25, 0, 16, 1, FILTER_REDISBLOOM);
    check_layout(3500000, 0.01, 0, 16, 1, FILTER_REDISBLOOM);
    check_layout(3501000, 0.01, 0, 16, 16, FILTER_OWN);
    check_layout(3500000, 0.01, 2, 16, 16, FILTER_OWN);
    check_layout(BLOOM_CAPACITY_MAX, 0.01, 2, 16, 16, FILTER_OWN);
    check_layout(BLOOM_CAPACITY_MAX, 0.01, 2, 1, 1, FILTER_OWN);
}

Test(filter_shape, read_as_stored)
{
    struct filter_shape shape;
    cr_assert(read(&shape, "1790000000000000", "1000", "0.01", "2", "1", NULL));
    cr_expect_eq(shape.id, UINT64_C(1790000000000000));
    cr_expect_eq(shape.capacity, 1000);
    cr_expect_eq(shape.shard.capacity, 1000, "one shard is as it was asked for");
    cr_expect_eq(shape.shard.error, 0.01);
    cr_expect_eq(shape.expansion, 2);
    cr_expect_not(shape.dropping);
    cr_assert(read(&shape, "5", "1000", "0.01", "0", "1", "1"));
    cr_expect(shape.dropping);
    cr_expect_eq(shape.shard.rules, BLOOM_REDISBLOOM, "before there were others");
    cr_assert(read_with("2", &shape, "5", "1000", "0.01", "0", "1", NULL));
    cr_expect_eq(shape.shard.rules, BLOOM_OWN);
    cr_assert(read(&shape, NULL, NULL, NULL, NULL, NULL, NULL));
    cr_expect_eq(shape.id, 0);
}

/* What a number meant once it means for ever. */
Test(filter_shape, strings_as_stored)
{
    static const struct {
        const char *rules, *capacity, *shards;
        uint64_t segments, bytes; /* of layer 0; of each */
    } cases[] = {
        {NULL, "3000000", "1", 1, 4135408},
        {"1", "3000000", "1", 1, 4135408},
        {"1", "1000000", "1", 1, 1378472},
        {"2", "20000000", "1", 27, 1 << 20},
        {"4", "20000000", "1", 107, (256 << 10) - 16},
        {"4", "20000000", "16", 7, (256 << 10) - 16},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct filter_shape shape;
        cr_assert(read_with(
            cases[i].rules, &shape, "5", cases[i].capacity, "0.01", "2", cases[i].shards, NULL));
        struct bloom_layer layer = bloom_layer(&shape.shard, 0);
        cr_expect_eq(layer.segments, cases[i].segments, "%zu: %d", i, (int)layer.segments);
        cr_expect_leq(layer.bits / 8, cases[i].bytes, "%zu: %d", i, (int)(layer.bits / 8));
        cr_expect_geq(layer.bits / 8, cases[i].bytes * (layer.segments == 1 ? 10 : 9) / 10);
    }
}

Test(filter_shape, foreign_data_is_refused)
{
    struct filter_shape shape;
    cr_expect_not(read(&shape, "x", "1000", "0.01", "2", "1", NULL));
    cr_expect_not(read(&shape, "-1", "1000", "0.01", "2", "1", NULL));
    cr_expect_not(read(&shape, "5", NULL, "0.01", "2", "1", NULL));
    cr_expect_not(read(&shape, "5", "0", "0.01", "2", "1", NULL));
    cr_expect_not(read(&shape, "5", "1073741825", "0.01", "2", "1", NULL));
    cr_expect_not(read(&shape, "5", "1000", NULL, "2", "1", NULL));
    cr_expect_not(read(&shape, "5", "1000", "nan", "2", "1", NULL));
    cr_expect_not(read(&shape, "5", "1000", "0.3", "2", "1", NULL));
    cr_expect_not(read(&shape, "5", "1000", "0", "2", "1", NULL));
    cr_expect_not(read(&shape, "5", "1000", "0.01", "3", "1", NULL));
    cr_expect_not(read(&shape, "5", "1000", "0.01", "2", "0", NULL));
    cr_expect_not(read(&shape, "5", "1000", "0.01", "2", "17", NULL));
    cr_expect_not(read_with("0", &shape, "5", "1000", "0.01", "2", "1", NULL));
    cr_expect_not(read_with("3", &shape, "5", "1000", "0.01", "2", "1", NULL));
    cr_expect_not(read_with("5", &shape, "5", "1000", "0.01", "2", "1", NULL));
    cr_expect_not(read_with("x", &shape, "5", "1000", "0.01", "2", "1", NULL));
    struct reply nothing = {.type = REPLY_ARRAY, .n = 0};
    cr_expect_not(filter_shape_read(&shape, &nothing));
}

Test(filter_shape, shards_are_a_little_larger_than_their_share)
{
    struct filter_shape shape;
    cr_assert(read(&shape, "5", "16000000", "0.01", "2", "16", NULL));
    cr_expect_eq(shape.shard.capacity, 1020000);
    cr_expect_eq(filter_nominal_capacity(&shape, 1) * 16, 16000000);
    cr_expect_eq(filter_nominal_capacity(&shape, 3) * 16, 7 * 16000000.0);
}

/* So few items a shard that 2 % would be three deviations: a filter that does not grow must not
 * refuse before it is full. */
Test(filter_shape, small_shards_are_larger_still)
{
    struct filter_shape shape;
    unsigned hits[16] = {0};
    cr_assert(read_with("2", &shape, "5", "448000", "1e-15", "0", "16", NULL));
    cr_expect_eq(shape.shard.capacity, (uint64_t)ceil(28000 + 6 * sqrt(28000)));
    cr_expect_leq(bloom_layer(&shape.shard, 0).bits, UINT64_C(1) << 23);
    for (unsigned i = 0; i < 448000; i++) {
        struct bloom_hash hash = bloom_hash((struct slice){(const char *)&i, sizeof(i)});
        hits[filter_shard_of(&shape, hash)]++;
    }
    for (unsigned s = 0; s < 16; s++) {
        cr_expect_leq(hits[s], shape.shard.capacity, "shard %u: %u", s, hits[s]);
    }
}

Test(filter_shape, items_fall_evenly_into_shards_and_partitions)
{
    struct filter_shape shape;
    unsigned hits[16] = {0};
    unsigned partitions = 0;
    cr_assert(read(&shape, "5", "16000000", "0.01", "2", "16", NULL));
    for (unsigned i = 0; i < 160000; i++) {
        struct bloom_hash hash = bloom_hash((struct slice){(const char *)&i, sizeof(i)});
        hits[filter_shard_of(&shape, hash)]++;
    }
    for (unsigned s = 0; s < 16; s++) {
        cr_expect_float_eq((double)hits[s], 10000, 500, "shard %u: %u", s, hits[s]);
        partitions |= 1u << filter_partition(&shape, s);
    }
    cr_expect_eq(partitions, 0xffff, "each in a partition of its own");
}

/* Every request reads all shards; they are in different partitions, as far apart as can be. */
Test(filter_shape, shards_are_few_and_spread_over_many_partitions)
{
    static const struct {
        unsigned partitions, shards, apart;
    } cases[] = {{16, 16, 1}, {64, 64, 1}, {65, 64, 1}, {256, 64, 4}, {1024, 64, 16}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct partitions p = parts(cases[i].partitions);
        struct filter_shape shape;
        unsigned shards = filter_layout(100000000, 0.01, 2, &p).shards;
        cr_expect_eq(shards, cases[i].shards);
        filter_shape_init(&shape, SLICE("site"), SLICE("name"), &p);
        cr_expect_eq(filter_partition(&shape, 0), shape.home, "also while it is not known");
        shape.shards = shards;
        for (unsigned s = 0; s < shards; s++) {
            cr_expect_eq(filter_partition(&shape, s),
                (shape.home + s * cases[i].apart) % cases[i].partitions);
        }
    }
}

/* The share of a shard that falls into each of its segments is fair, too. */
Test(filter_shape, shards_and_segments_are_independent)
{
    struct filter_shape shape;
    unsigned hits[2] = {0};
    unsigned n = 0;
    cr_assert(read(&shape, "5", "16000000", "0.01", "2", "16", NULL));
    shape.shard.segment_bits = 6000000;
    struct bloom_layer layer = bloom_layer(&shape.shard, 0);
    cr_assert_eq(layer.segments, 2);
    for (unsigned i = 0; i < 160000; i++) {
        struct bloom_hash hash = bloom_hash((struct slice){(const char *)&i, sizeof(i)});
        if (filter_shard_of(&shape, hash) == 3) {
            hits[bloom_segment(&layer, hash)]++;
            n++;
        }
    }
    cr_expect_float_eq((double)hits[0], n / 2.0, 250);
}

static bool read_shard(uint64_t id, const char *const *words, size_t n, struct filter_shard *ret)
{
    struct filter_shape shape = {.id = id};
    struct reply items[16];
    for (size_t i = 0; i < n; i++) {
        items[i] = text(words[i]);
    }
    struct reply pairs = {.type = REPLY_ARRAY, .items = items, .n = n};
    return filter_shard_read(&shape, &pairs, ret);
}

Test(filter_shape, shards_as_stored)
{
    struct filter_shard shard;
    static const char *const words[] = {"id", "7", "n", "3", "0", "10", "1", "20", "2", "5"};
    cr_assert(read_shard(7, words, 10, &shard));
    cr_expect_eq(shard.n, 3);
    cr_expect_eq(shard.items[0] + shard.items[1] + shard.items[2], 35);
    cr_assert(read_shard(8, words, 10, &shard));
    cr_expect_eq(shard.n, 0, "of an earlier filter");
    cr_expect_eq(shard.items[0], 0);
    cr_assert(read_shard(7, words, 0, &shard));
    cr_expect_eq(shard.n, 0);
    cr_expect_not(read_shard(7, words, 3, &shard));
    static const char *const many[] = {"id", "7", "n", "33", "32", "1", "-1", "5", "x", "y"};
    cr_assert(read_shard(7, many, 10, &shard));
    cr_expect_eq(shard.n, 0);
}

Test(filter_shape, replies_of_other_forms_are_refused)
{
    struct filter_shape shape;
    struct filter_shard shard;
    struct partitions p = parts(16);
    struct reply items[] = {text("id"), text("7"), text("n")};
    struct reply odd = {.type = REPLY_ARRAY, .items = items, .n = 3}, none = text("7");
    filter_shape_init(&shape, SLICE("s"), SLICE("f"), &p);
    cr_expect_not(filter_shape_read(&shape, &odd));
    cr_expect_not(filter_shape_read(&shape, &none));
    cr_expect_not(filter_shard_read(&shape, &odd, &shard));
    cr_expect_not(filter_shard_read(&shape, &none, &shard));
    static const char *const ids[] = {"0", "-1", "x", ""};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        cr_expect_not(read(&shape, ids[i], "100", "0.01", "2", "1", NULL), "%s", ids[i]);
    }
}
