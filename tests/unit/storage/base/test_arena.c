#include "storage/base/arena.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "tests/lib/dice.h"

TestSuite(arena, .timeout = 60);

#define PIECES 400

/* ---- success ---- */

Test(arena, zeroed_is_empty)
{
    struct arena arena = {0};
    arena_clear(&arena);
    arena_release(&arena);
    cr_expect_null(arena.blocks);
}

Test(arena, no_bytes_are_a_place_too)
{
    struct arena arena = {0};
    cr_expect_not_null(arena_alloc(&arena, 0));
    arena_release(&arena);
}

/* Pieces are aligned, and keep what is written into them while others come. */
Test(arena, pieces_are_apart)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct arena arena = {0};
    for (int round = 0; round < 30; round++) {
        unsigned char *pieces[PIECES];
        size_t sizes[PIECES];
        for (int i = 0; i < PIECES; i++) {
            sizes[i] = (size_t)dice_below(&dice, dice_chance(&dice, 20) ? 60000 : 100);
            pieces[i] = arena_alloc(&arena, sizes[i]);
            cr_assert_not_null(pieces[i]);
            cr_assert_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0u);
            memset(pieces[i], i & 0xff, sizes[i]);
        }
        for (int i = 0; i < PIECES; i++) {
            for (size_t at = 0; at < sizes[i]; at++) {
                cr_assert_eq(pieces[i][at], i & 0xff, "TALLYD_TEST_SEED=%" PRIu64, seed);
            }
        }
        arena_clear(&arena);
    }
    arena_release(&arena);
}

Test(arena, clear_keeps_one_modest_block)
{
    struct arena arena = {0};
    void *first = arena_alloc(&arena, 100);
    cr_assert_not_null(arena_alloc(&arena, 1000000));
    cr_assert_not_null(arena_alloc(&arena, 100));
    arena_clear(&arena);
    cr_assert_not_null(arena.blocks);
    cr_expect_lt(arena.capacity, 100000);
    void *again = arena_alloc(&arena, 100);
    cr_expect_not_null(again);
    arena_clear(&arena);
    cr_expect_eq(arena_alloc(&arena, 100), again);
    arena_release(&arena);
    cr_expect_null(arena.blocks);
    (void)first;
}

/* Most arenas have a few small pieces, and there are many of them at a time. */
Test(arena, a_few_small_pieces_take_little)
{
    struct arena arena = {0};
    cr_assert_not_null(arena_alloc(&arena, 100));
    cr_assert_not_null(arena_alloc(&arena, 800));
    cr_expect_leq(arena.capacity, 1024);
    cr_assert_not_null(arena_alloc(&arena, 800));
    cr_expect_gt(arena.capacity, 1024);
    arena_release(&arena);
}

Test(arena, clear_of_large_pieces_only)
{
    struct arena arena = {0};
    cr_assert_not_null(arena_alloc(&arena, 1000000));
    arena_clear(&arena);
    cr_expect_null(arena.blocks);
    cr_expect_not_null(arena_alloc(&arena, 1));
    arena_release(&arena);
}

/* ---- failure ---- */

Test(arena, too_much)
{
    struct arena arena = {0};
    char *before = arena_alloc(&arena, 10);
    memcpy(before, "unchanged", 10);
    cr_expect_null(arena_alloc(&arena, SIZE_MAX));
    cr_expect_null(arena_alloc(&arena, SIZE_MAX - 15));
    cr_expect_null(arena_alloc(&arena, SIZE_MAX / 2 + 1));
    cr_expect_str_eq(before, "unchanged");
    cr_expect_not_null(arena_alloc(&arena, 10));
    arena_release(&arena);
}

Test(arena, a_copy_is_bytes_of_its_own)
{
    struct arena arena = {0};
    char text[] = "name";
    struct slice name = {text, 4}, empty = {NULL, 0};
    cr_assert(arena_copy(&arena, &name) && arena_copy(&arena, &empty));
    text[0] = '-';
    cr_expect(slice_equal(name, SLICE("name")));
    cr_expect(empty.p != NULL && empty.n == 0);
    arena_release(&arena);
}
