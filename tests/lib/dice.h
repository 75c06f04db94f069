/* dice.h - repeatable random numbers for property tests.
 *
 * Source: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators").
 * A property test prints the seed it failed with; TALLYD_TEST_SEED repeats it.
 */
#ifndef TESTS_LIB_DICE_H
#define TESTS_LIB_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

/* TALLYD_TEST_SEED, or always the same. */
uint64_t dice_seed(void);

struct dice dice_make(uint64_t seed);
uint64_t dice_u64(struct dice *dice);
/* 0 .. n-1; n is at least 1. */
int64_t dice_below(struct dice *dice, int64_t n);
/* True @permille times in a thousand. */
bool dice_chance(struct dice *dice, unsigned permille);
void dice_bytes(struct dice *dice, void *bytes, size_t n);

#endif
