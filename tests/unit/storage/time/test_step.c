#include "storage/time/step.h"

#include <criterion/criterion.h>

#include "tests/lib/utc.h"

static struct zone *make(int64_t first_s, const char *at, int64_t offset_s)
{
    const char *fault = NULL;
    struct zone_change change = {utc(at), offset_s};
    struct zone *zone = zone_make("Test/Zone", first_s, &change, 1, false, 0, &fault);

    cr_assert_not_null(zone, "%s", fault);
    return zone;
}

static void check(const struct zone *zone, enum step step, const char *at, const char *end)
{
    cr_expect_eq(
        step_end(zone, step, utc(at)), utc(end), "%s at %s: not %s", step_name(step), at, end);
}

Test(step, in_utc)
{
    check(zone_utc(), STEP_MINUTE, "2026-11-20 15:37", "2026-11-20 15:38");
    check(zone_utc(), STEP_5_MINUTES, "2026-11-20 15:37", "2026-11-20 15:40");
    check(zone_utc(), STEP_15_MINUTES, "2026-11-20 15:45", "2026-11-20 16:00");
    check(zone_utc(), STEP_HOUR, "2026-11-20 15:37", "2026-11-20 16:00");
    check(zone_utc(), STEP_DAY, "2026-11-20 15:37", "2026-11-21 00:00");
    check(zone_utc(), STEP_WEEK, "2026-11-20 15:37", "2026-11-23 00:00"); /* a Friday */
    check(zone_utc(), STEP_WEEK, "2026-11-22 23:59", "2026-11-23 00:00");
    check(zone_utc(), STEP_WEEK, "2026-11-23 00:00", "2026-11-30 00:00");
    check(zone_utc(), STEP_WEEK, "1970-01-01 00:00", "1970-01-05 00:00");
    check(zone_utc(), STEP_MONTH, "2026-12-31 23:59", "2027-01-01 00:00");
}

/* Berlin's clocks go back at 01:00 UTC: its 2 o'clock comes twice. */
Test(step, an_hour_that_comes_twice_is_two_points)
{
    struct zone *zone = make(7200, "2026-10-25 01:00", 3600);
    struct window day = {utc("2026-10-24 22:00"), utc("2026-10-25 23:00")};

    check(zone, STEP_HOUR, "2026-10-25 00:30", "2026-10-25 01:00");
    check(zone, STEP_HOUR, "2026-10-25 01:30", "2026-10-25 02:00");
    check(zone, STEP_DAY, "2026-10-25 00:30", "2026-10-25 23:00");
    check(zone, STEP_WEEK, "2026-10-25 00:30", "2026-10-25 23:00");
    check(zone, STEP_MONTH, "2026-10-25 00:30", "2026-10-31 23:00");
    cr_expect_eq(step_count(zone, STEP_HOUR, day, 1000), 25);
    cr_expect_eq(step_count(zone, STEP_DAY, day, 1000), 1);
    zone_free(zone);
}

Test(step, quarters_of_an_hour)
{
    struct zone *zone = make(20700, "1986-01-01 00:00", 20700); /* Kathmandu */

    check(zone, STEP_HOUR, "2026-11-20 15:37", "2026-11-20 16:15");
    check(zone, STEP_15_MINUTES, "2026-11-20 15:37", "2026-11-20 15:45");
    check(zone, STEP_DAY, "2026-11-20 15:37", "2026-11-20 18:15");
    zone_free(zone);
}

Test(step, count_and_limit)
{
    struct window window = {utc("2026-11-20 15:37"), utc("2026-11-21 15:37")};

    cr_expect_eq(step_count(zone_utc(), STEP_HOUR, window, 1000), 25);
    cr_expect_eq(step_count(zone_utc(), STEP_HOUR, window, 25), 25);
    cr_expect_eq(step_count(zone_utc(), STEP_HOUR, window, 24), 25, "one more than the limit");
    cr_expect_eq(step_count(zone_utc(), STEP_MINUTE, window, 100), 101);
    cr_expect_eq(step_fitting(zone_utc(), window, 1440), STEP_MINUTE);
    cr_expect_eq(step_fitting(zone_utc(), window, 500), STEP_5_MINUTES);
    cr_expect_eq(step_fitting(zone_utc(), window, 100), STEP_15_MINUTES);
    cr_expect_eq(step_fitting(zone_utc(), window, 1), STEP_WEEK);
    window.to_s = utc("9999-11-21 15:37");
    cr_expect_eq(step_fitting(zone_utc(), window, 11000), STEP_NONE);
}

Test(step, names)
{
    enum step step = STEP_NONE;

    for (enum step s = STEP_MINUTE; s <= STEP_AUTO; s++) {
        cr_expect(step_parse(slice_of(step_name(s)), &step) && step == s);
    }
    step = STEP_NONE;
    cr_expect_not(step_parse(SLICE(""), &step));
    cr_expect_not(step_parse(SLICE("1y"), &step));
    cr_expect_not(step_parse(SLICE("1h "), &step));
    cr_expect_eq(step, STEP_NONE);
}

/* As long as the step that is no wider than usual. */
Test(step, lengths)
{
    static const int64_t at_s = 1772496000; /* Tuesday, 2026-03-03 */
    for (int step = STEP_MINUTE; step < STEP_MONTH; step++) {
        int64_t begin_s = step_end(zone_utc(), (enum step)step, at_s);
        cr_expect_eq(step_length_s((enum step)step),
            step_end(zone_utc(), (enum step)step, begin_s) - begin_s, "%s",
            step_name((enum step)step));
    }
    cr_expect_eq(step_length_s(STEP_MONTH), 28 * 86400);
}
