#include "tests/lib/dice.h"

#include <stdlib.h>

uint64_t dice_seed(void)
{
    const char *text = getenv("TALLYD_TEST_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : UINT64_C(20261120);
}

struct dice dice_make(uint64_t seed)
{
    /* neighbouring seeds must not give neighbouring states, and 0 is no state */
    uint64_t state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    state = (state ^ state >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return (struct dice){state != 0 ? state : 1};
}

uint64_t dice_u64(struct dice *dice)
{
    dice->state ^= dice->state >> 12;
    dice->state ^= dice->state << 25;
    dice->state ^= dice->state >> 27;
    return dice->state * UINT64_C(2685821657736338717);
}

int64_t dice_below(struct dice *dice, int64_t n)
{
    return (int64_t)((dice_u64(dice) >> 1) % (uint64_t)n);
}

bool dice_chance(struct dice *dice, unsigned permille)
{
    return dice_below(dice, 1000) < (int64_t)permille;
}

void dice_bytes(struct dice *dice, void *bytes, size_t n)
{
    unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        p[i] = (unsigned char)(dice_u64(dice) >> 56);
    }
}
