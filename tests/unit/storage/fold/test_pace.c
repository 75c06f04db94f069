#include <criterion/criterion.h>

#include "storage/fold/pace.h"

static double after(uint64_t estimated_us, size_t bytes, int64_t measured_us, unsigned scripts)
{
    struct pace pace = {0};
    while (scripts-- > 0) {
        pace_learn(&pace, estimated_us, bytes, measured_us);
    }
    return pace_limit_us(&pace);
}

Test(pace, begins_with_a_guess)
{
    cr_expect_eq(pace_limit_us(&(struct pace){0}), PACE_START_US);
}

Test(pace, follows_what_scripts_took)
{
    cr_expect_float_eq(after(2000, 0, 2000, 30), PACE_GOAL_US, 20);
    cr_expect_float_eq(after(2000, 0, 4000, 30), PACE_GOAL_US / 2, 20);
    cr_expect_float_eq(after(2000, 0, 1500, 30), PACE_GOAL_US / 1.5 * 2, 40);
}

Test(pace, counts_what_the_arguments_cost)
{
    cr_expect_lt(after(2000, 1200000, 2000, 30), after(2000, 0, 2000, 30) * 0.6);
}

Test(pace, stays_within_bounds)
{
    cr_expect_eq(after(3000, 0, 1, 100), PACE_MAX_US);
    cr_expect_eq(after(3000, 0, INT64_MAX, 100), PACE_MIN_US);
}

Test(pace, learns_nothing_from_small_scripts_and_from_a_redis_that_does_not_say)
{
    cr_expect_eq(after(10, 0, 1000000, 100), PACE_START_US);
    cr_expect_eq(after(3000, 0, 0, 100), PACE_START_US);
    cr_expect_eq(after(3000, 0, -1, 100), PACE_START_US);
}

Test(pace, forgets)
{
    struct pace pace = {0};
    for (int i = 0; i < 1000; i++) {
        pace_learn(&pace, 2000, 0, 8000);
    }
    cr_assert_lt(pace_limit_us(&pace), 1000);
    for (int i = 0; i < 100; i++) {
        pace_learn(&pace, 2000, 0, 2000);
    }
    cr_expect_gt(pace_limit_us(&pace), 2400);
}
