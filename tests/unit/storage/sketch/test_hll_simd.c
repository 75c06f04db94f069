/* test_hll_simd.c - every kernel that this processor can run does what the scalar one does.
 *
 * That the scalar one is Redis's is test_hll.c and integration/test_hll_redis.py.
 */
#include "storage/sketch/hll_simd.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "storage/sketch/hll.h"
#include "tests/lib/dice.h"

#define BEFORE      4 /* bytes that may be read in front of the packed registers */
#define PACKED_SIZE (HLL_REGISTERS * 6 / 8)

static const struct hll_kernel *scalar_kernel(void)
{
    const struct hll_kernel *last = NULL;
    for (size_t k = 0; hll_kernel(k) != NULL; k++) {
        last = hll_kernel(k);
    }
    cr_assert_str_eq(last->name, "scalar");
    return last;
}

/* What a processor of today has to find. */
Test(hll_simd, chooses_the_widest)
{
    cr_assert_not_null(hll_kernel(0));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        cr_assert_str_eq(hll_kernel(0)->name, "AVX2");
    }
#endif
}

/* Registers of a set, of anything, or all the same. */
static void draw(struct dice *dice, uint8_t *registers)
{
    int64_t kind = dice_below(dice, 4);
    int64_t least = dice_below(dice, 64);
    int64_t range = kind == 0 ? 1 : kind == 1 ? 64 - least : 1 + dice_below(dice, 64 - least);
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        registers[i] = (uint8_t)(least + dice_below(dice, range));
        if (kind == 3) {
            uint64_t coins = dice_u64(dice) >> 14 | UINT64_C(1) << 50;
            registers[i] = (uint8_t)(__builtin_ctzll(coins) + 1);
        }
    }
}

/* Packed by its definition, in memory that ends where the registers do. */
static uint8_t *pack(const uint8_t *registers)
{
    uint8_t *packed = calloc(BEFORE + PACKED_SIZE, 1);
    memset(packed, 0xff, BEFORE); /* what is in front must not matter */
    for (size_t bit = 0; bit < 6 * HLL_REGISTERS; bit++) {
        if (registers[bit / 6] >> (bit % 6) & 1) {
            packed[BEFORE + bit / 8] |= (uint8_t)(1u << (bit % 8));
        }
    }
    return packed;
}

Test(hll_simd, kernels_agree)
{
    struct dice dice = dice_make(dice_seed());
    struct hll *sets = calloc(4, sizeof(*sets));
    uint8_t *a = sets[0].registers, *b = sets[1].registers, *expected = sets[2].registers;
    uint8_t *merged = sets[3].registers;
    for (int round = 0; round < 200; round++) {
        uint32_t counts[HLL_VALUES], expected_counts[HLL_VALUES] = {0};
        draw(&dice, a);
        draw(&dice, b);
        uint8_t *packed = pack(b);
        for (size_t i = 0; i < HLL_REGISTERS; i++) {
            expected[i] = a[i] > b[i] ? a[i] : b[i];
            expected_counts[a[i]]++;
        }
        for (size_t k = 0; hll_kernel(k) != NULL; k++) {
            const struct hll_kernel *kernel = hll_kernel(k);
            memcpy(merged, a, HLL_REGISTERS);
            kernel->merge_packed(merged, packed + BEFORE);
            cr_assert_eq(memcmp(merged, expected, HLL_REGISTERS), 0, "%s, packed, round %d",
                kernel->name, round);
            memcpy(merged, a, HLL_REGISTERS);
            kernel->merge(merged, b);
            cr_assert_eq(
                memcmp(merged, expected, HLL_REGISTERS), 0, "%s, round %d", kernel->name, round);
            memset(counts, 0xff, sizeof(counts));
            kernel->count_values(a, counts);
            cr_assert_eq(memcmp(counts, expected_counts, sizeof(counts)), 0, "%s, counts, round %d",
                kernel->name, round);
        }
        free(packed);
    }
    free(sets);
    (void)scalar_kernel();
}

/* One register at a time, in each of the positions that it has in its bytes and in a vector. */
Test(hll_simd, each_register_alone)
{
    struct hll *sets = calloc(2, sizeof(*sets));
    for (size_t i = 0; i < HLL_REGISTERS; i += i < 200 || i >= HLL_REGISTERS - 200 ? 1 : 97) {
        sets[0].registers[i] = (uint8_t)(1 + i % 63);
        uint8_t *packed = pack(sets[0].registers);
        for (size_t k = 0; hll_kernel(k) != NULL; k++) {
            uint32_t counts[HLL_VALUES];
            memset(&sets[1], 0, sizeof(sets[1]));
            hll_kernel(k)->merge_packed(sets[1].registers, packed + BEFORE);
            cr_assert_eq(memcmp(&sets[0], &sets[1], sizeof(sets[0])), 0, "%s, register %zu",
                hll_kernel(k)->name, i);
            hll_kernel(k)->count_values(sets[1].registers, counts);
            cr_assert_eq(counts[0], HLL_REGISTERS - 1);
            cr_assert_eq(counts[1 + i % 63], 1);
        }
        free(packed);
        sets[0].registers[i] = 0;
    }
    free(sets);
}
