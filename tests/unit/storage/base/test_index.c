#include "storage/base/index.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tests/lib/dice.h"

TestSuite(index, .timeout = 60);

/* Items are numbers; the caller's array. */
struct numbers {
    uint64_t *items;
    size_t n, capacity;
    uint64_t wanted;
};

static bool same(const void *context, uint32_t item)
{
    const struct numbers *numbers = context;
    cr_assert_lt(item, numbers->n, "the index asks for what was never set");
    return numbers->items[item] == numbers->wanted;
}

/* The place of @number, put there if it is new. */
static uint32_t find_or_add(
    struct index *index, struct numbers *numbers, uint64_t number, uint64_t hash)
{
    bool is_new;
    size_t n = numbers->n;
    numbers->wanted = number;
    uint32_t item = index_add(index, hash, same, numbers, &numbers->items, &numbers->capacity,
        &numbers->n, sizeof(*numbers->items), &is_new);
    cr_assert_eq(numbers->n, n + is_new);
    if (is_new) {
        cr_assert_eq(item, n);
        numbers->items[item] = number;
        cr_assert_eq(index->used, numbers->n);
        cr_assert_lt(index->used, index->size, "an empty slot ends every search");
    }
    return item;
}

static uint64_t good_hash(uint64_t number)
{
    return (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Few different ones: long runs of probes, also around the end of the table. */
static uint64_t bad_hash(uint64_t number)
{
    return UINT32_MAX - number % 3;
}

/* Against a map that is an array: first place of each number since the last clear. */
static void check_random(uint64_t (*hash)(uint64_t number), int64_t range, int rounds, int finds)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct index index = {0};
    struct numbers numbers = {0};
    uint32_t *places = malloc((size_t)range * sizeof(*places));
    cr_assert_not_null(places);
    for (int round = 0; round < rounds; round++) {
        index_clear(&index);
        numbers.n = 0;
        memset(places, 0xff, (size_t)range * sizeof(*places));
        for (int i = 0; i < finds; i++) {
            uint64_t number = (uint64_t)dice_below(&dice, range);
            uint32_t expected = places[number] != UINT32_MAX ? places[number] : (uint32_t)numbers.n;
            cr_assert_eq(find_or_add(&index, &numbers, number, hash(number)), expected,
                "TALLYD_TEST_SEED=%" PRIu64, seed);
            places[number] = expected;
        }
    }
    index_release(&index);
    cr_expect(index.slots == NULL && index.size == 0);
    free(numbers.items);
    free(places);
}

Test(index, agrees_with_an_array)
{
    check_random(good_hash, 5000, 10, 8000);
}

Test(index, hashes_that_collide)
{
    check_random(bad_hash, 300, 10, 1000);
}

Test(index, items_of_one_hash_are_told_apart)
{
    struct index index = {0};
    struct numbers numbers = {0};
    for (uint64_t number = 0; number < 200; number++) {
        cr_assert_eq(find_or_add(&index, &numbers, number, 7), (uint32_t)number);
    }
    for (uint64_t number = 200; number-- > 0;) {
        cr_assert_eq(find_or_add(&index, &numbers, number, 7), (uint32_t)number);
    }
    index_release(&index);
    free(numbers.items);
}

Test(index, clear_of_an_empty_one)
{
    struct index index = {0};
    index_clear(&index);
    index_release(&index);
    cr_assert(index_reserve(&index));
    index_clear(&index);
    struct numbers numbers = {0};
    cr_expect_eq(index_find(&index, 1, same, &numbers)->item, INDEX_NONE);
    index_release(&index);
}

Test(index, array_grows_and_keeps_its_items)
{
    int64_t *array = NULL;
    size_t capacity = 0;
    for (size_t n = 0; n < 1000; n++) {
        cr_assert(array_reserve(&array, &capacity, n, sizeof(*array)));
        cr_assert_gt(capacity, n);
        array[n] = (int64_t)n;
    }
    for (size_t n = 0; n < 1000; n++) {
        cr_assert_eq(array[n], (int64_t)n);
    }
    size_t more = 5 * capacity;
    cr_assert(array_reserve(&array, &capacity, more, sizeof(*array)) && capacity > more);
    cr_expect_eq(array[999], 999);
    free(array);
}

/* ---- failure ---- */

Test(index, array_that_cannot_grow_stays)
{
    char *array = NULL;
    size_t capacity = 0;
    cr_assert(array_reserve(&array, &capacity, 0, 1));
    const char *before = array;
    size_t capacity_before = capacity;
#ifndef __SANITIZE_ADDRESS__ /* which aborts where the product overflows */
    cr_expect_not(array_reserve(&array, &capacity, capacity, SIZE_MAX / 2));
#endif
    cr_expect(array == before && capacity == capacity_before);
    free(array);
}

/* What came once is not kept for ever; what comes again and again is. */
Test(index, memory_follows_the_use)
{
    struct index index = {0};
    struct numbers numbers = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        (void)find_or_add(&index, &numbers, i, good_hash(i));
    }
    const size_t size = index.size;
    const size_t capacity = numbers.capacity;
    for (size_t clear = 0; clear < 20; clear++) {
        array_relax(&numbers.items, &numbers.capacity, numbers.n, sizeof(*numbers.items));
        numbers.n = 0;
        index_clear(&index);
        cr_expect(clear > 0 || (index.size == size && numbers.capacity == capacity));
        cr_expect(clear != 1 || (index.size == size / 2 && numbers.capacity == capacity / 2));
        for (uint64_t i = 0; i < 10; i++) {
            cr_expect_eq(find_or_add(&index, &numbers, i, good_hash(i)), i);
        }
    }
    cr_expect_eq(index.size, 64u);
    cr_expect_lt(numbers.capacity, 160u);
    cr_expect_geq(numbers.capacity, 10u);
    index_release(&index);
    free(numbers.items);
}

Test(index, one_that_was_never_used_is_cleared)
{
    struct index index = {0};
    uint64_t *none = NULL;
    size_t capacity = 0;
    index_clear(&index);
    array_relax(&none, &capacity, 0, sizeof(*none));
    cr_expect(index.slots == NULL && none == NULL && capacity == 0);
    cr_assert(index_expect(&index, 1000));
    const size_t size = index.size;
    index_clear(&index);
    cr_expect_eq(index.size, size / 2, "nothing was put in");
    struct numbers numbers = {0};
    cr_expect_eq(find_or_add(&index, &numbers, 7, good_hash(7)), 0u);
    index_release(&index);
    free(numbers.items);
}
