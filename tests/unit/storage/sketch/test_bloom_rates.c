/* How often a Bloom filter says yes to what is not in it: over many filters of each size, since one
 * small filter tells little. */
#include "storage/sketch/bloom.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/lib/dice.h"

TestSuite(bloom_rates, .timeout = 60);

#define PROBES 400000 /* of each case, over all its filters */

struct filter {
    struct bloom_params params;
    unsigned n;
    uint64_t items[BLOOM_LAYERS_MAX];
    struct bloom_layer layers[BLOOM_LAYERS_MAX];
    unsigned char *bits[BLOOM_LAYERS_MAX];
};

static void grow(struct filter *f)
{
    f->layers[f->n] = bloom_layer(&f->params, f->n);
    cr_assert_eq(f->layers[f->n].segments, 1);
    f->bits[f->n] = calloc(1, f->layers[f->n].bits / 8);
    f->items[f->n++] = 0;
}

static bool has(const struct filter *f, struct bloom_hash hash)
{
    for (unsigned l = 0; l < f->n; l++) {
        const struct bloom_layer *layer = &f->layers[l];
        bool all = true;
        for (unsigned i = 0; all && i < layer->hashes; i++) {
            uint64_t bit = bloom_bit(layer, hash, i);
            all = (f->bits[l][bit / 8] >> (bit % 8) & 1) != 0;
        }
        if (all) {
            return true;
        }
    }
    return false;
}

static bool add(struct filter *f, struct bloom_hash hash)
{
    if (has(f, hash)) {
        return false;
    }
    if (f->n == 0 || f->items[f->n - 1] >= f->layers[f->n - 1].capacity) {
        grow(f);
    }
    const struct bloom_layer *layer = &f->layers[f->n - 1];
    for (unsigned i = 0; i < layer->hashes; i++) {
        uint64_t bit = bloom_bit(layer, hash, i);
        cr_assert_lt(bit, layer->bits);
        f->bits[f->n - 1][bit / 8] |= (unsigned char)(1u << (bit % 8));
    }
    f->items[f->n - 1]++;
    return true;
}

static struct bloom_hash roll_item(struct dice *dice)
{
    uint64_t item = dice_u64(dice);
    return bloom_hash((struct slice){(const char *)&item, sizeof(item)});
}

static double expected(const struct filter *f)
{
    double no = 1;
    for (unsigned l = 0; l < f->n; l++) {
        no *= 1 - bloom_false_positives(&f->layers[l], f->items[l]);
    }
    return 1 - no;
}

/* Fill filters with @n items each, as many filters as it takes, and ask each for others. */
static double measure(
    struct bloom_params params, uint64_t n, struct dice *dice, double *ret_expected)
{
    uint64_t filters = 2 + 40000 / (n + 10);
    uint64_t yes = 0;
    *ret_expected = 0;
    for (uint64_t i = 0; i < filters; i++) {
        struct filter f = {.params = params};
        for (uint64_t added = 0; added < n;) {
            added += add(&f, roll_item(dice)) ? 1 : 0;
        }
        for (uint64_t probe = 0; probe < PROBES / filters; probe++) {
            yes += has(&f, roll_item(dice)) ? 1 : 0;
        }
        *ret_expected += expected(&f) / (double)filters;
        for (unsigned l = 0; l < f.n; l++) {
            free(f.bits[l]);
        }
    }
    return (double)yes / (double)(PROBES / filters * filters);
}

/* What chance may add to a rate: five deviations, of as many independent yeses. */
static double chance(double rate)
{
    return 5 * sqrt(rate / PROBES) + 5.0 / PROBES;
}

static const double errors[] = {0.25, 0.1, 0.01, 0.001};
static const uint64_t capacities[] = {1, 2, 5, 10, 100, 1000, 10000};

static struct bloom_params ours(uint64_t capacity, double error, unsigned expansion)
{
    return (struct bloom_params){.rules = BLOOM_OWN,
        .capacity = capacity,
        .error = error,
        .expansion = expansion,
        .segment_bits = BLOOM_SEGMENT_BITS};
}

Test(bloom_rates, ours_are_at_most_what_was_asked_for)
{
    struct dice dice = dice_make(dice_seed());
    for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
            for (unsigned expansion = 0; expansion <= 2; expansion += 2) {
                struct bloom_params params = ours(capacities[c], errors[e], expansion);
                double expect;
                uint64_t n = expansion == 0 ? capacities[c] : capacities[c] * 7; /* three layers */
                double rate = measure(params, n, &dice, &expect);
                cr_expect_leq(rate, errors[e] + chance(errors[e]), "%g, %d, %u: %g", errors[e],
                    (int)capacities[c], expansion, rate);
                cr_expect_leq(expect, errors[e] * 1.0001, "%g, %d, %u: %g", errors[e],
                    (int)capacities[c], expansion, expect);
            }
        }
    }
}

/* That of our own rules at capacity, at half of it and beyond. */
Test(bloom_rates, the_expected_rate_is_the_real_one)
{
    struct dice dice = dice_make(dice_seed());
    for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        for (size_t c = 3; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
            for (uint64_t half = 1; half <= 5; half += 2) {
                struct bloom_params params = ours(capacities[c], errors[e], 2);
                double expect;
                double rate = measure(params, capacities[c] * half / 2, &dice, &expect);
                cr_expect_leq(fabs(rate - expect), expect * 0.05 + chance(expect),
                    "%g, %d: %g, expected %g", errors[e], (int)capacities[c], rate, expect);
            }
        }
    }
}

/* No more than is said of them: RedisBloom's rules cannot keep every error in few bits. */
Test(bloom_rates, redisblooms_are_at_most_what_was_asked_for_and_2_in_bits)
{
    struct dice dice = dice_make(dice_seed());
    for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
            struct bloom_params params = ours(capacities[c], errors[e], 2);
            params.rules = BLOOM_REDISBLOOM;
            double expect;
            double rate = measure(params, capacities[c] * 7, &dice, &expect);
            double said = errors[e] + 2 / (double)bloom_layer(&params, 0).bits;
            cr_expect_leq(rate, said + chance(said), "%g, %d: %g, said %g", errors[e],
                (int)capacities[c], rate, said);
        }
    }
}

/* A filter that another program has overfilled. */
Test(bloom_rates, no_more_bits_are_set_than_there_are)
{
    struct bloom_params params = ours(1000, 0.01, 0);
    struct bloom_layer layer = bloom_layer(&params, 0);
    double before = 0;
    for (uint64_t items = 0; items <= 64000; items += 500) {
        double fill = bloom_fill(&layer, items);
        cr_assert(fill >= before && fill <= 1, "%d items: %g", (int)items, fill);
        cr_assert_leq(bloom_false_positives(&layer, items), 1);
        before = fill;
    }
    cr_expect_eq(before, 1);
}
