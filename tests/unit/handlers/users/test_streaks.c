#include "handlers/users/streaks.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "tests/lib/dice.h"

TestSuite(streaks, .timeout = 60);

/* Days in a row that end on day @i. */
static size_t ending(const uint8_t *days, size_t n, size_t i)
{
    size_t streak = 0;
    while (i < n && days[i] != 0) {
        streak++;
        if (i-- == 0) {
            break;
        }
    }
    return streak;
}

Test(streaks, as_one_would_count)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    for (int round = 0; round < 5000; round++) {
        uint8_t days[40];
        size_t n = (size_t)dice_below(&dice, 41);
        size_t longest = 0;
        size_t current = 0;
        size_t ret_longest;
        size_t ret_current;
        for (size_t i = 0; i < n; i++) {
            days[i] = dice_chance(&dice, 700);
        }
        for (size_t i = 0; i < n; i++) {
            size_t streak = ending(days, n, i);
            longest = streak > longest ? streak : longest;
        }
        if (n > 0) {
            current = ending(days, n, n - 1);
            current = current == 0 && n > 1 ? ending(days, n, n - 2) : current;
        }
        streaks_find(days, n, &ret_longest, &ret_current);
        cr_assert_eq(ret_longest, longest, "TALLYD_TEST_SEED=%" PRIu64, seed);
        cr_assert_eq(ret_current, current, "TALLYD_TEST_SEED=%" PRIu64, seed);
    }
}
