#include "storage/filter_groups.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(filter_groups, .timeout = 60);

static struct bloom_layer layer(
    uint64_t capacity, double error, uint64_t segment_bits, uint64_t string_bits)
{
    struct bloom_params params = {.rules = string_bits > 0 ? BLOOM_REDISBLOOM : BLOOM_OWN,
        .capacity = capacity,
        .error = error,
        .expansion = 2,
        .segment_bits = segment_bits,
        .string_bits = string_bits};
    return bloom_layer(&params, 0);
}

static struct bloom_hash hash(unsigned i)
{
    return bloom_hash((struct slice){(const char *)&i, sizeof(i)});
}

/* All bits of all items that went in, each where it belongs, in the order of the items. */
static void check(const struct filter_groups *groups, const struct bloom_layer *l, size_t most)
{
    struct group group = {0};
    size_t n = 0;
    unsigned *seen = calloc(groups->n_items, sizeof(*seen));
    cr_assert(seen);
    while (filter_groups_next(groups, most, &group)) {
        cr_assert_eq(group.from, n, "none is left out");
        cr_assert(group.to > group.from &&
                  (group.to - group.from <= most || group.to - group.from == groups->run));
        cr_assert_eq((group.to - group.from) % groups->run, 0);
        for (size_t i = group.from; i < group.to; i++, n++) {
            const struct group_bit *bit = &groups->ordered[i];
            struct bloom_hash h = hash(bit->item);
            bool found = false;
            cr_assert_lt(bit->item, groups->n_items);
            for (unsigned j = 0; j < l->hashes; j++) {
                struct bloom_place place = bloom_place(l, h, j);
                found = found ||
                        (place.bit == bit->bit && place.string == groups->strings[group.string]);
            }
            cr_assert(
                found, "item %u has no bit %u in string %zu", bit->item, bit->bit, group.string);
            cr_assert(i == group.from || bit->item >= groups->ordered[i - 1].item);
            cr_assert(
                (i - group.from) % groups->run == 0 || bit->item == groups->ordered[i - 1].item);
            seen[bit->item]++;
        }
    }
    cr_expect_eq(n, groups->n_bits);
    for (size_t i = 0; i < groups->n_items; i++) {
        cr_assert_eq(seen[i], l->hashes);
    }
    free(seen);
}

static void fill(const struct bloom_layer *l, unsigned n, unsigned expected, unsigned run)
{
    struct filter_groups *groups = malloc(sizeof(*groups));
    unsigned in = 0;
    cr_assert(groups);
    filter_groups_begin(groups, l);
    while (in < n && filter_groups_add(groups, hash(in))) {
        in++;
    }
    filter_groups_end(groups);
    cr_expect_eq(in, expected, "%u of %u", in, n);
    cr_expect_eq(groups->n_items, in);
    cr_expect_eq(groups->run, run);
    check(groups, l, GROUPS_BITS_MAX);
    check(groups, l, 64);
    check(groups, l, 5);
    free(groups);
}

Test(filter_groups, one_string)
{
    struct bloom_layer l = layer(100000, 0.01, BLOOM_SEGMENT_BITS, BLOOM_STRING_BITS(256 << 10));
    cr_assert_eq(l.segments * l.strings, 1);
    fill(&l, 0, 0, 8);
    fill(&l, 1, 1, 8);
    fill(&l, 1000, 250, 8);
}

Test(filter_groups, several_strings)
{
    struct bloom_layer l = layer(3000000, 0.01, BLOOM_SEGMENT_BITS, BLOOM_STRING_BITS(256 << 10));
    cr_assert_eq(l.strings, 16);
    fill(&l, 1, 1, 1);
    fill(&l, 1000, 250, 1);
    struct bloom_layer many = layer(1000, 1e-15, BLOOM_SEGMENT_BITS, 6400);
    cr_assert_gt(many.strings, 10);
    fill(&many, 1000, GROUPS_BITS_MAX / many.hashes, 1);
}

Test(filter_groups, segments)
{
    struct bloom_layer l = layer(20000000, 0.01, BLOOM_STRING_BITS(256 << 10), 0);
    cr_assert(l.segments > 100 && l.strings == 1);
    fill(&l, 1000, 250, 8);
}

/* What did not fit leaves no trace. */
Test(filter_groups, more_strings_than_fit)
{
    struct bloom_layer l = layer(20000000, 0.25, 1 << 15, 0);
    cr_assert_gt(l.segments, 1000);
    struct filter_groups *groups = malloc(sizeof(*groups));
    cr_assert(groups);
    filter_groups_begin(groups, &l);
    unsigned in = 0;
    while (filter_groups_add(groups, hash(in))) {
        in++;
    }
    cr_expect(in >= GROUPS_STRINGS_MAX && in < 300, "%u", in);
    cr_expect_eq(groups->n_strings, GROUPS_STRINGS_MAX);
    filter_groups_end(groups);
    check(groups, &l, 64);
    filter_groups_begin(groups, &l);
    cr_expect(filter_groups_add(groups, hash(in)), "the first one fits");
    free(groups);

    struct bloom_layer both = layer(20000000, 0.01, 1 << 20, 1 << 16);
    cr_assert(both.segments > 100 && both.strings > 10);
    groups = malloc(sizeof(*groups));
    cr_assert(groups);
    filter_groups_begin(groups, &both);
    for (in = 0; filter_groups_add(groups, hash(in)); in++) {
    }
    cr_expect(in > 20 && in < 200, "%u", in);
    filter_groups_end(groups);
    check(groups, &both, 64);
    free(groups);
}
