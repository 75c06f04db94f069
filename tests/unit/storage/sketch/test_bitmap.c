#include "storage/sketch/bitmap.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tests/lib/dice.h"

TestSuite(bitmap, .timeout = 60);

#define WORDS 9
#define BITS  (64 * WORDS)

/* Redis's order. */
static bool bit(const uint8_t *bytes, size_t n, size_t i)
{
    return i / 8 < n && (bytes[i / 8] >> (7 - i % 8) & 1) != 0;
}

static bool bit_of(const uint64_t *words, size_t i)
{
    return bit((const uint8_t *)words, BITS / 8, i);
}

/* A string of any length, also longer than the words; dense, thin or empty. */
static size_t random_bytes(struct dice *dice, uint8_t bytes[static 2 * BITS / 8])
{
    size_t n = (size_t)dice_below(dice, 2 * BITS / 8);
    int64_t thin = dice_below(dice, 3);
    dice_bytes(dice, bytes, n);
    for (size_t i = 0; i < n && thin > 0; i++) {
        bytes[i] = dice_chance(dice, 100) ? bytes[i] : 0;
    }
    return n;
}

Test(bitmap, or_and_are_bit_by_bit)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    for (int round = 0; round < 2000; round++) {
        uint64_t words[WORDS];
        uint64_t before[WORDS];
        uint8_t bytes[2 * BITS / 8];
        size_t n = random_bytes(&dice, bytes);
        bool all = dice_chance(&dice, 500);
        dice_bytes(&dice, words, sizeof(words));
        memcpy(before, words, sizeof(words));
        if (all) {
            bitmap_and(words, WORDS, (struct slice){(char *)bytes, n});
        } else {
            bitmap_or(words, WORDS, (struct slice){(char *)bytes, n});
        }
        for (size_t i = 0; i < BITS; i++) {
            bool expected =
                all ? bit_of(before, i) && bit(bytes, n, i) : bit_of(before, i) || bit(bytes, n, i);
            cr_assert_eq(bit_of(words, i), expected, "TALLYD_TEST_SEED=%" PRIu64, seed);
        }
    }
}

Test(bitmap, counts_and_walks)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    for (int round = 0; round < 500; round++) {
        uint64_t a[WORDS] = {0};
        uint64_t b[WORDS] = {0};
        uint8_t bytes[2 * BITS / 8];
        uint64_t both = 0;
        bitmap_or(a, WORDS, (struct slice){(char *)bytes, random_bytes(&dice, bytes)});
        bitmap_or(b, WORDS, (struct slice){(char *)bytes, random_bytes(&dice, bytes)});
        for (size_t i = 0; i < BITS; i++) {
            both += bit_of(a, i) && bit_of(b, i);
        }
        cr_assert_eq(bitmap_count_both(a, b, WORDS), both, "TALLYD_TEST_SEED=%" PRIu64, seed);
        size_t next = BITS;
        for (size_t i = BITS; i-- > 0;) {
            next = bit_of(a, i) ? i : next;
            cr_assert_eq(bitmap_next(a, WORDS, i), next, "TALLYD_TEST_SEED=%" PRIu64, seed);
        }
        cr_assert_eq(bitmap_next(a, WORDS, BITS), (uint64_t)BITS);
    }
    cr_expect_eq(bitmap_count_both(NULL, NULL, 0), 0u);
}
