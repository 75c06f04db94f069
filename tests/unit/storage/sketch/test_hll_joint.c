/* test_hll_joint.c - the joint estimate is right, its errors hold, and beats inclusion-exclusion.
 *
 * Sets are drawn as random hashes straight into the registers, as hll_add() would.
 */
#include "storage/sketch/hll_joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/lib/dice.h"

static void throw_in(struct hll *hll, uint64_t hash)
{
    uint8_t *reg = &hll->registers[hash % HLL_REGISTERS];
    uint8_t count = (uint8_t)(__builtin_ctzll(hash >> 14 | UINT64_C(1) << 50) + 1);
    *reg = count > *reg ? count : *reg;
}

struct sizes {
    int only_a, only_b, both;
};

struct sets {
    struct hll a, b;
};

static struct sets *draw(struct dice *dice, struct sizes n)
{
    struct sets *sets = calloc(1, sizeof(*sets));
    for (int i = 0; i < n.only_a; i++) {
        throw_in(&sets->a, dice_u64(dice));
    }
    for (int i = 0; i < n.only_b; i++) {
        throw_in(&sets->b, dice_u64(dice));
    }
    for (int i = 0; i < n.both; i++) {
        uint64_t hash = dice_u64(dice);
        throw_in(&sets->a, hash);
        throw_in(&sets->b, hash);
    }
    return sets;
}

/* |A| + |B| - |A or B| */
static double inclusion_exclusion(const struct sets *sets)
{
    struct hll *either = malloc(sizeof(*either));
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        uint8_t a = sets->a.registers[i];
        uint8_t b = sets->b.registers[i];
        either->registers[i] = a > b ? a : b;
    }
    double n = (double)hll_estimate(&sets->a) + (double)hll_estimate(&sets->b) -
               (double)hll_estimate(either);
    free(either);
    return n;
}

#define TRIALS 200

/* Over many draws, how far off the figures are, what they say of themselves, and how often the 95 %
 * interval holds the truth. */
struct record {
    double square, said_square;
    int held;
};

static void note(struct record *record, struct hll_figure figure, double truth)
{
    double off = figure.value - truth;
    record->square += off * off / TRIALS;
    record->said_square += figure.error * figure.error / TRIALS;
    record->held += fabs(off) <= HLL_JOINT_95 * figure.error ? 1 : 0;
}

enum { ONLY_A, ONLY_B, BOTH, A, B, EITHER, JACCARD, FIGURES };

/* Returns the root mean square error of inclusion-exclusion; the records' squares become roots. */
static double try_sizes(struct dice *dice, struct sizes n, struct record records[FIGURES])
{
    double total = n.only_a + n.only_b + n.both;
    double square = 0;
    memset(records, 0, FIGURES * sizeof(*records));
    for (int i = 0; i < TRIALS; i++) {
        struct sets *sets = draw(dice, n);
        struct hll_joint joint;
        hll_joint_estimate(&sets->a, &sets->b, &joint);
        note(&records[ONLY_A], joint.only_a, n.only_a);
        note(&records[ONLY_B], joint.only_b, n.only_b);
        note(&records[BOTH], joint.both, n.both);
        note(&records[A], joint.a, n.only_a + n.both);
        note(&records[B], joint.b, n.only_b + n.both);
        note(&records[EITHER], joint.either, total);
        note(&records[JACCARD], joint.jaccard, n.both / total);
        square += pow(inclusion_exclusion(sets) - n.both, 2) / TRIALS;
        free(sets);
    }
    for (int f = 0; f < FIGURES; f++) {
        records[f].square = sqrt(records[f].square);
        records[f].said_square = sqrt(records[f].said_square);
    }
    return sqrt(square);
}

/* 200 draws of a 95 % interval: 190 +- 3 hold it, so 179 to 199 is what a right one gives. */
#define LEAST_HELD 179

Test(hll_joint, errors_are_what_they_say)
{
    static const struct sizes cases[] = {{49500, 49500, 1000}, {9500, 9500, 1000},
        {10000, 30000, 5000}, {10000, 10000, 10000}, {2500, 2500, 5000}, {2000, 2000, 36000},
        {500, 50000, 500}, {100, 100, 100}};
    struct dice dice = dice_make(dice_seed());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct record r[FIGURES];
        double plain = try_sizes(&dice, cases[i], r);
        for (int f = 0; f < FIGURES; f++) {
            cr_assert_geq(
                r[f].held, LEAST_HELD, "case %zu, figure %d: %d of %d", i, f, r[f].held, TRIALS);
            cr_assert(
                r[f].square > 0.75 * r[f].said_square && r[f].square < 1.25 * r[f].said_square,
                "case %zu, figure %d: off by %g, says %g", i, f, r[f].square, r[f].said_square);
        }
        cr_assert_lt(r[BOTH].square, 1.1 * plain, "case %zu: %g, inclusion-exclusion %g", i,
            r[BOTH].square, plain);
        if (cases[i].both == 1000) { /* a small part in common is where it pays */
            cr_assert_lt(r[BOTH].square, 0.6 * plain, "case %zu: %g, inclusion-exclusion %g", i,
                r[BOTH].square, plain);
        }
    }
}

/* Parts of no or few elements: intervals that are too wide rather than too narrow. */
Test(hll_joint, errors_of_parts_that_hardly_show)
{
    static const struct sizes cases[] = {{20000, 20000, 0}, {0, 30000, 3000}, {3, 30000, 3000},
        {20, 30000, 3000}, {0, 0, 10000}, {1, 0, 10000}, {5, 5, 40000}, {0, 20000, 0}};
    struct dice dice = dice_make(dice_seed());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct record r[FIGURES];
        (void)try_sizes(&dice, cases[i], r);
        for (int f = 0; f < FIGURES; f++) {
            cr_assert_geq(
                r[f].held, LEAST_HELD, "case %zu, figure %d: %d of %d", i, f, r[f].held, TRIALS);
        }
    }
}

static bool sane(const struct hll_joint *joint)
{
    const struct hll_figure *figures = &joint->only_a;
    for (int f = 0; f < FIGURES; f++) {
        if (!isfinite(figures[f].value) || !isfinite(figures[f].error) || figures[f].value < 0 ||
            figures[f].error < 0) {
            return false;
        }
    }
    return joint->jaccard.value <= 1;
}

_Static_assert(sizeof(struct hll_joint) == FIGURES * sizeof(struct hll_figure), "figures only");

Test(hll_joint, of_nothing)
{
    struct sets *sets = calloc(1, sizeof(*sets));
    struct hll_joint joint;
    hll_joint_estimate(&sets->a, &sets->b, &joint);
    const struct hll_figure *figures = &joint.only_a;
    for (int f = 0; f < FIGURES; f++) {
        cr_assert_eq(figures[f].value, 0);
        cr_assert_eq(figures[f].error, 0);
    }
    free(sets);
}

Test(hll_joint, of_few_is_nearly_exact)
{
    struct dice dice = dice_make(dice_seed());
    struct sets *sets = draw(&dice, (struct sizes){3, 5, 2});
    struct hll_joint joint;
    hll_joint_estimate(&sets->a, &sets->b, &joint);
    cr_assert_float_eq(joint.only_a.value, 3, 0.1);
    cr_assert_float_eq(joint.only_b.value, 5, 0.1);
    cr_assert_float_eq(joint.both.value, 2, 0.1);
    cr_assert_float_eq(joint.either.value, 10, 0.1);
    cr_assert_float_eq(joint.jaccard.value, 0.2, 0.01);
    cr_assert_lt(joint.both.error, 0.1);
    free(sets);
}

/* The other way round it is the same, and the parts add up. */
Test(hll_joint, is_symmetric)
{
    struct dice dice = dice_make(dice_seed());
    for (int i = 0; i < 50; i++) {
        struct sizes n = {(int)dice_below(&dice, 20000), (int)dice_below(&dice, 20000),
            (int)dice_below(&dice, 20000)};
        struct sets *sets = draw(&dice, n);
        struct hll_joint ab;
        struct hll_joint ba;
        hll_joint_estimate(&sets->a, &sets->b, &ab);
        hll_joint_estimate(&sets->b, &sets->a, &ba);
        double digits = 1e-3 * (1 + ab.either.error);
        cr_assert_float_eq(ab.only_a.value, ba.only_b.value, digits);
        cr_assert_float_eq(ab.only_b.value, ba.only_a.value, digits);
        cr_assert_float_eq(ab.both.value, ba.both.value, digits);
        cr_assert_float_eq(ab.both.error, ba.both.error, digits);
        cr_assert_float_eq(ab.a.value, ab.only_a.value + ab.both.value, 1e-6 * ab.a.value);
        cr_assert_float_eq(
            ab.either.value, ab.a.value + ab.b.value - ab.both.value, 1e-6 * ab.either.value);
        free(sets);
    }
}

/* No set yields them, anybody who may SET a key can. */
Test(hll_joint, of_forged_registers_stays_finite)
{
    struct dice dice = dice_make(dice_seed());
    struct sets *sets = calloc(1, sizeof(*sets));
    for (int round = 0; round < 300; round++) {
        int64_t low_a = dice_below(&dice, 64);
        int64_t low_b = dice_below(&dice, 64);
        int64_t range = 1 + dice_below(&dice, 64);
        for (size_t i = 0; i < HLL_REGISTERS; i++) {
            sets->a.registers[i] = (uint8_t)((low_a + dice_below(&dice, range)) % 64);
            sets->b.registers[i] = (uint8_t)((low_b + dice_below(&dice, range)) % 64);
            if (round % 3 == 0) { /* most are nothing */
                sets->a.registers[i] = dice_chance(&dice, 10) ? sets->a.registers[i] : 0;
                sets->b.registers[i] = dice_chance(&dice, 10) ? sets->b.registers[i] : 0;
            }
        }
        struct hll_joint joint;
        hll_joint_estimate(&sets->a, &sets->b, &joint);
        cr_assert(sane(&joint), "round %d", round);
    }
    memset(sets->a.registers, 63, HLL_REGISTERS);
    memset(sets->b.registers, 63, HLL_REGISTERS);
    struct hll_joint joint;
    hll_joint_estimate(&sets->a, &sets->b, &joint);
    cr_assert(sane(&joint), "all full");
    free(sets);
}
