#include "storage/fold/pace.h"

#include <criterion/criterion.h>

#define NOW_S    INT64_C(1795187834) /* 14 seconds into a minute */
#define MINUTE_S (NOW_S - NOW_S % 60)

static struct work work_of(unsigned kind, uint32_t estimated_us)
{
    struct work work = {.newest_s = NOW_S};
    work.tenths[kind] = estimated_us * 10;
    return work;
}

static void learn(struct pace *pace, unsigned kind, uint32_t estimated_us, int64_t measured_us,
    unsigned transactions)
{
    struct work work = work_of(kind, estimated_us);
    while (transactions-- > 0) {
        pace_learn(pace, &work, measured_us, NOW_S);
    }
}

static uint32_t after(uint32_t estimated_us, int64_t measured_us, unsigned transactions)
{
    struct pace pace = {.end_s = 0};
    learn(&pace, TASK_VISIT, estimated_us, measured_us, transactions);
    return pace_percent(&pace, TASK_VISIT, NOW_S);
}

Test(pace, begins_with_the_constants)
{
    struct pace pace = {.end_s = 0};
    for (unsigned k = 0; k < WORK_KINDS; k++) {
        cr_expect_eq(pace_percent(&pace, k, NOW_S), 100u);
    }
}

Test(pace, follows_what_transactions_took)
{
    cr_expect_eq(after(2000, 2000, 1), 100u);
    cr_expect_float_eq(after(2000, 4000, 20), 200, 1);
    cr_expect_float_eq(after(2000, 1500, 20), 75, 1);
}

Test(pace, stays_within_bounds)
{
    cr_expect_eq(after(3000, 1, 100), (uint32_t)PACE_LEAST);
    cr_expect_eq(after(3000, INT64_MAX, 100), (uint32_t)PACE_MOST);
}

Test(pace, learns_nothing_from_small_transactions_and_from_a_redis_that_does_not_say)
{
    cr_expect_eq(after(10, 1000000, 100), 100u);
    cr_expect_eq(after(3000, 0, 100), 100u);
    cr_expect_eq(after(3000, -1, 100), 100u);
}

/* Users that are new, and sketches that do not change: the one is expensive, the other cheap. */
Test(pace, kinds_do_not_share_a_pace)
{
    struct pace pace = {.end_s = 0};
    learn(&pace, TASK_SITE, 2000, 1000, 20);
    learn(&pace, TASK_USER, 2000, 6000, 20);
    learn(&pace, TASK_SITE, 2000, 1000, 20);
    cr_expect_eq(pace_percent(&pace, TASK_SITE, NOW_S), 50u);
    cr_expect_float_eq(pace_percent(&pace, TASK_USER, NOW_S), 300, 1);
    cr_expect_eq(pace_percent(&pace, TASK_PAGE, NOW_S), 100u);
}

/* What a transaction of several kinds took is divided as was expected. */
Test(pace, kinds_that_come_together_become_slower_together)
{
    struct pace pace = {.end_s = 0};
    struct work work = work_of(TASK_SITE, 1000);
    struct work more = work_of(TASK_VISIT, 1000);
    learn(&pace, TASK_VISIT, 2000, 6000, 20);
    work_add(&work, &more);
    cr_assert_eq(work.tenths[TASK_SITE], 10000u);
    cr_assert_eq(work.tenths[TASK_VISIT], 10000u);
    work_add(&work, &(struct work){.newest_s = NOW_S - 60});
    cr_assert_eq(work.newest_s, NOW_S);
    pace_learn(&pace, &work, 4000, NOW_S); /* as expected: 1,000 and 3,000 */
    cr_expect_float_eq(pace_percent(&pace, TASK_SITE, NOW_S), 100, 1);
    cr_expect_float_eq(pace_percent(&pace, TASK_VISIT, NOW_S), 300, 1);
    pace_learn(&pace, &work, 8000, NOW_S);
    cr_expect_gt(pace_percent(&pace, TASK_SITE, NOW_S), 120u);
    cr_expect_gt(pace_percent(&pace, TASK_VISIT, NOW_S), 310u);
}

Test(pace, forgets)
{
    struct pace pace = {.end_s = 0};
    learn(&pace, TASK_VISIT, 2000, 8000, 1000);
    cr_assert_eq(pace_percent(&pace, TASK_VISIT, NOW_S), 400u);
    learn(&pace, TASK_VISIT, 2000, 2000, 20);
    cr_expect_leq(pace_percent(&pace, TASK_VISIT, NOW_S), 105u);
}

/* It waited for the machine: its content is not 1,000 times as slow as the others'. */
Test(pace, one_that_was_interrupted_counts_for_little)
{
    struct pace pace = {.end_s = 0};
    learn(&pace, TASK_VISIT, 1500, 1500, 100);
    learn(&pace, TASK_VISIT, 1500, 1500000, 1);
    cr_expect_leq(pace_percent(&pace, TASK_VISIT, NOW_S), 200u);
    learn(&pace, TASK_VISIT, 1500, 1500, 5);
    cr_expect_leq(pace_percent(&pace, TASK_VISIT, NOW_S), 115u);
}

/* Small requests are counted in transactions of what the limit allows.  Where these told nothing, a
 * kind that was expensive once would stay so for as long as nothing else comes. */
Test(pace, short_transactions_tell_of_an_expensive_kind)
{
    struct pace pace = {.end_s = 0};
    learn(&pace, TASK_VISIT, 2000, 20000, 100);
    cr_assert_eq(pace_percent(&pace, TASK_VISIT, NOW_S), (uint32_t)PACE_MOST);
    /* Of whole partitions, each half as much as fits: one comes alone. */
    for (int i = 0; i < 400; i++) {
        uint32_t percent = pace_percent(&pace, TASK_VISIT, NOW_S);
        uint32_t estimated_us = PACE_GOAL_SHORT_US / 2 * 100 / percent;
        learn(&pace, TASK_VISIT, estimated_us, (int64_t)estimated_us, 1);
    }
    cr_expect_lt(pace_percent(&pace, TASK_VISIT, NOW_S), 150u);
}

/* ---- minutes ---- */

/* A new minute's sketches are empty, and cost more than those of the minute before. */
Test(pace, what_is_known_of_sketches_ends_with_their_minute)
{
    struct pace pace = {.end_s = 0};
    struct work work = work_of(TASK_SITE, 2000);
    learn(&pace, TASK_PAGE, 2000, 1000, 20);
    learn(&pace, TASK_SITE, 2000, 1000, 20);
    learn(&pace, TASK_VISIT, 2000, 1000, 20);
    cr_assert_eq(pace_percent(&pace, TASK_PAGE, MINUTE_S + 59), 50u);
    cr_assert_eq(pace_percent(&pace, TASK_SITE, MINUTE_S + 59), 50u);

    cr_expect_eq(pace_percent(&pace, TASK_PAGE, MINUTE_S + 60), 100u);
    cr_expect_eq(pace_percent(&pace, TASK_SITE, MINUTE_S + 60), 100u);
    cr_expect_eq(pace_percent(&pace, TASK_VISIT, MINUTE_S + 60), 50u, "a visit has no sketch");
    cr_expect_eq(pace_percent(&pace, TASK_SITE, MINUTE_S - 3600), 50u, "late events");

    work.newest_s = MINUTE_S + 60;
    pace_learn(&pace, &work, 4000, MINUTE_S + 60);
    cr_expect_eq(pace_percent(&pace, TASK_SITE, MINUTE_S + 60), 200u);
    cr_expect_eq(pace_percent(&pace, TASK_PAGE, MINUTE_S + 60), 100u);
    cr_expect_eq(pace_percent(&pace, TASK_VISIT, MINUTE_S + 60), 50u);
}

Test(pace, a_new_minute_is_no_cheaper_than_the_one_before)
{
    struct pace pace = {.end_s = 0};
    learn(&pace, TASK_SITE, 2000, 6000, 20);
    cr_expect_float_eq(pace_percent(&pace, TASK_SITE, MINUTE_S + 60), 300, 1);
}

/* An event of a clock that is ahead does not hide the minutes until its time. */
Test(pace, an_event_of_the_future_ends_no_minute)
{
    struct pace pace = {.end_s = 0};
    struct work work = work_of(TASK_SITE, 2000);
    work.newest_s = NOW_S + 3600;
    pace_learn(&pace, &work, 1000, NOW_S);
    cr_expect_eq(pace.end_s, MINUTE_S + 60);
    cr_expect_eq(pace_percent(&pace, TASK_SITE, MINUTE_S + 60), 100u);
}

/* Its minute is new, so that its sketches were not expected to be cheap. */
Test(pace, an_event_of_the_future_is_no_cheaper_than_the_constants)
{
    struct pace pace = {.end_s = 0};
    struct work work = work_of(TASK_SITE, 1000);
    struct work more = work_of(TASK_VISIT, 1000);
    learn(&pace, TASK_SITE, 2000, 1000, 20);
    work_add(&work, &more);
    work.newest_s = NOW_S + 3600;
    pace_learn(&pace, &work, 3000, NOW_S); /* 1,500 each */
    cr_expect_eq(pace_percent(&pace, TASK_VISIT, NOW_S), 150u);
}
