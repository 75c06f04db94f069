#include "storage/base/clock.h"

#include <criterion/criterion.h>
#include <time.h>

TestSuite(clock, .timeout = 60);

#define SECOND_US INT64_C(1000000)

Test(clock, monotonic)
{
    struct timespec t;
    int64_t before_us = monotonic_us();
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t at_us = (int64_t)t.tv_sec * SECOND_US + t.tv_nsec / 1000;
    cr_expect_leq(before_us, at_us);
    cr_expect_leq(at_us, monotonic_us());
    cr_expect_leq(before_us / 1000, monotonic_ms());
    cr_expect_leq(monotonic_ms(), monotonic_us() / 1000);
}
