/* hll_add.h - an element into a sketch, as Redis adds it: tallyd itself has Redis do that.  Written
 * apart from hll_place_of(), which is tested against it.
 */
#ifndef TESTS_LIB_HLL_ADD_H
#define TESTS_LIB_HLL_ADD_H

#include "storage/sketch/bloom.h"
#include "storage/sketch/hll.h"

#define HLL_ADD_SEED 0xadc83b19 /* Redis's choice: another one and no register would agree */

/* Add one element as PFADD does.  NULL with @n 0 is the empty string, an element like others. */
static inline void hll_add(struct hll *hll, const void *element, size_t n)
{
    uint64_t hash = murmur_hash64a(element, n, HLL_ADD_SEED);
    uint8_t *reg = &hll->registers[hash & (HLL_REGISTERS - 1)];
    /* The bit above the 50 coin bits stops the count at 51, and keeps ctz from an argument of 0. */
    uint64_t coins = (hash >> 14) | (UINT64_C(1) << 50);
    uint8_t count = (uint8_t)(__builtin_ctzll(coins) + 1);
    if (count > *reg) {
        *reg = count;
    }
}

#endif
