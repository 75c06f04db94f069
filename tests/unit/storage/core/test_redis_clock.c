#include "storage/core/redis_clock.h"

#include <criterion/criterion.h>
#include <time.h>

#include "storage/base/clock.h"

TestSuite(redis_clock, .timeout = 60);

#define SECOND_US INT64_C(1000000)
#define REDIS_US  (INT64_C(1795190400) * SECOND_US)

/* Redis's clock is @ahead_us ahead of ours: a reply that took @delay_us says so now. */
static bool seen(struct redis_clock *clock, int64_t ahead_us, int64_t delay_us)
{
    return redis_clock_seen(clock, monotonic_us() + ahead_us - delay_us);
}

/* The bound is that of a Redis @ahead_us ahead, to the 20 ms that the test may take itself. */
static void check_bound(struct redis_clock *clock, int64_t ahead_us, int line)
{
    int64_t true_ms = (monotonic_us() + ahead_us) / 1000;
    int64_t bound_ms = redis_clock_ms(clock);
    cr_expect(bound_ms <= true_ms + 1 && bound_ms >= true_ms - 20, "line %d: %lld, not %lld", line,
        (long long)bound_ms, (long long)true_ms);
}
#define CHECK_BOUND(ahead_us) check_bound(&clock, ahead_us, __LINE__)

Test(redis_clock, unknown_until_seen)
{
    struct redis_clock clock = {0};
    cr_expect_eq(redis_clock_ms(&clock), 0);
    seen(&clock, REDIS_US, 0);
    CHECK_BOUND(REDIS_US);
}

Test(redis_clock, goes_on_without_replies)
{
    struct redis_clock clock = {0};
    seen(&clock, REDIS_US, 0);
    int64_t before_ms = redis_clock_ms(&clock);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    cr_expect_geq(redis_clock_ms(&clock), before_ms + 29);
    CHECK_BOUND(REDIS_US);
}

Test(redis_clock, keeps_the_best_bound)
{
    struct redis_clock clock = {0};
    seen(&clock, REDIS_US, 900000);
    CHECK_BOUND(REDIS_US - 900000);
    cr_expect_not(seen(&clock, REDIS_US, 300000), "a faster reply");
    CHECK_BOUND(REDIS_US - 300000);
    cr_expect_not(seen(&clock, REDIS_US, 900000), "a slower one");
    CHECK_BOUND(REDIS_US - 300000);
    cr_expect_not(seen(&clock, REDIS_US, 0));
    CHECK_BOUND(REDIS_US);
}

Test(redis_clock, follows_a_clock_that_was_set)
{
    struct redis_clock clock = {0};
    seen(&clock, REDIS_US, 0);
    cr_expect(seen(&clock, REDIS_US + 3600 * SECOND_US, 0), "forward");
    CHECK_BOUND(REDIS_US + 3600 * SECOND_US);
    cr_expect_not(seen(&clock, REDIS_US + 3600 * SECOND_US, 1000));
    cr_expect_not(seen(&clock, REDIS_US, 0), "a reply from before");
    CHECK_BOUND(REDIS_US + 3600 * SECOND_US);
    nanosleep(&(struct timespec){.tv_sec = CLOCK_STEADY_US / SECOND_US, .tv_nsec = 1000000}, NULL);
    cr_expect(seen(&clock, REDIS_US, 0), "back");
    CHECK_BOUND(REDIS_US);
    cr_expect(seen(&clock, REDIS_US - 3600 * SECOND_US, 0), "and further back at once");
    CHECK_BOUND(REDIS_US - 3600 * SECOND_US);
    cr_expect(seen(&clock, REDIS_US, 0), "forward");
    cr_expect_not(
        seen(&clock, REDIS_US - SECOND_US / 2, 0), "back, by less than a second: a delay");
    CHECK_BOUND(REDIS_US);
}

/* ahead_us 0 means unknown, but a Redis behind our monotonic clock is no special case. */
Test(redis_clock, behind_our_own)
{
    struct redis_clock clock = {0};
    int64_t now_us = monotonic_us();
    redis_clock_seen(&clock, now_us / 2);
    cr_expect_geq(redis_clock_ms(&clock), now_us / 2 / 1000);
    cr_expect_leq(redis_clock_ms(&clock), now_us / 2 / 1000 + 1000);
}
