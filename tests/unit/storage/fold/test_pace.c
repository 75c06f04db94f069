#include <criterion/criterion.h>

#include "storage/fold/pace.h"

static double after(uint64_t estimated_us, int64_t measured_us, unsigned transactions)
{
    struct pace pace = {0};
    while (transactions-- > 0) {
        pace_learn(&pace, estimated_us, measured_us);
    }
    return pace_limit_us(&pace, PACE_GOAL_US);
}

Test(pace, begins_with_the_estimate)
{
    struct pace pace = {0};
    cr_expect_eq(pace_limit_us(&pace, PACE_GOAL_US), PACE_GOAL_US);
    cr_expect_eq(pace_limit_us(&pace, PACE_GOAL_SHORT_US), PACE_GOAL_SHORT_US);
}

Test(pace, follows_what_transactions_took)
{
    cr_expect_float_eq(after(2000, 2000, 30), PACE_GOAL_US, 20);
    cr_expect_float_eq(after(2000, 4000, 30), PACE_GOAL_US / 2, 20);
    cr_expect_float_eq(after(2000, 1500, 30), PACE_GOAL_US / 1.5 * 2, 40);
}

Test(pace, stays_within_bounds)
{
    cr_expect_eq(after(3000, 1, 100), PACE_GOAL_US * PACE_MAX / 100);
    cr_expect_eq(after(3000, INT64_MAX, 100), PACE_GOAL_US * PACE_MIN / 100);
}

Test(pace, learns_nothing_from_small_transactions_and_from_a_redis_that_does_not_say)
{
    cr_expect_eq(after(10, 1000000, 100), PACE_GOAL_US);
    cr_expect_eq(after(3000, 0, 100), PACE_GOAL_US);
    cr_expect_eq(after(3000, -1, 100), PACE_GOAL_US);
}

Test(pace, forgets)
{
    struct pace pace = {0};
    for (int i = 0; i < 1000; i++) {
        pace_learn(&pace, 2000, 8000);
    }
    cr_assert_lt(pace_limit_us(&pace, PACE_GOAL_US), 1000);
    for (int i = 0; i < 100; i++) {
        pace_learn(&pace, 2000, 2000);
    }
    cr_expect_gt(pace_limit_us(&pace, PACE_GOAL_US), PACE_GOAL_US * 0.95);
}

/* It waited for the machine: its content is not 1,000 times as slow as the others'. */
Test(pace, one_that_was_interrupted_counts_for_little)
{
    struct pace pace = {0};
    for (int i = 0; i < 100; i++) {
        pace_learn(&pace, 2000, 2000);
    }
    pace_learn(&pace, 2000, 2000000);
    cr_expect_gt(pace_limit_us(&pace, PACE_GOAL_US), PACE_GOAL_US * 0.6);
}

/* Small requests are counted in transactions of what the limit allows.  Where these told nothing, a
 * pace that was low once would stay so for as long as nothing else comes. */
Test(pace, short_transactions_raise_a_low_pace)
{
    struct pace pace = {0};
    for (int i = 0; i < 100; i++) {
        pace_learn(&pace, 2000, 20000);
    }
    cr_assert_eq(pace_limit_us(&pace, PACE_GOAL_SHORT_US), PACE_GOAL_SHORT_US * PACE_MIN / 100);
    for (int i = 0; i < 100; i++) {
        /* Of whole partitions, each half as much as fits: one comes alone. */
        uint64_t estimated_us = pace_limit_us(&pace, PACE_GOAL_SHORT_US) / 2 + 1;
        pace_learn(&pace, estimated_us, (int64_t)estimated_us);
    }
    cr_expect_gt(pace_limit_us(&pace, PACE_GOAL_SHORT_US), PACE_GOAL_SHORT_US / 2);
}
