#include <criterion/criterion.h>
#include <time.h>

#include "storage/time/bucket.h"
#include "storage/time/units.h"
#include "storage/time/zone_rule.h"
#include "tests/lib/utc.h"

static struct zone *make(int64_t first_s, const struct zone_change *changes, size_t n)
{
    const char *fault = NULL;
    struct zone *zone = zone_make("Test/Zone", first_s, changes, n, false, 0, &fault);

    cr_assert_not_null(zone, "%s", fault);
    return zone;
}

/* Berlin's summer of 2026. */
static struct zone *berlin(void)
{
    return make(HOUR_S,
        (struct zone_change[]){
            {utc("2026-03-29 01:00"), 2 * HOUR_S}, {utc("2026-10-25 01:00"), HOUR_S}},
        2);
}

static void check_bucket(
    const struct zone *zone, enum level level, const char *at, const char *from, const char *to)
{
    struct bucket bucket = bucket_at(zone, level, utc(at));

    cr_expect(bucket.level == level && bucket.start_s == utc(from) && bucket.end_s == utc(to),
        "%s at %s: not [%s, %s)", level_name(level), at, from, to);
}

Test(zone_table, days_of_23_and_25_hours)
{
    struct zone *zone = berlin();

    check_bucket(zone, LEVEL_DAY, "2026-03-29 12:00", "2026-03-28 23:00", "2026-03-29 22:00");
    check_bucket(zone, LEVEL_DAY, "2026-10-25 12:00", "2026-10-24 22:00", "2026-10-25 23:00");
    check_bucket(zone, LEVEL_MONTH, "2026-03-29 12:00", "2026-02-28 23:00", "2026-03-31 22:00");
    check_bucket(zone, LEVEL_HOUR, "2026-10-25 00:59", "2026-10-25 00:00", "2026-10-25 01:00");
    check_bucket(zone, LEVEL_HOUR, "2026-10-25 01:00", "2026-10-25 01:00", "2026-10-25 02:00");
    zone_free(zone);
}

Test(zone_table, a_time_that_comes_twice_and_one_that_never_does)
{
    struct zone *zone = berlin();

    cr_expect_eq(zone_utc_of_local(zone, utc("2026-10-25 02:30")), utc("2026-10-25 00:30"));
    cr_expect_eq(zone_first_at(zone, utc("2026-10-25 02:30")), utc("2026-10-25 00:30"));
    cr_expect_eq(zone_utc_of_local(zone, utc("2026-10-25 03:00")), utc("2026-10-25 02:00"));
    cr_expect_eq(zone_utc_of_local(zone, utc("2026-03-29 02:30")), utc("2026-03-29 01:30"));
    cr_expect_eq(zone_first_at(zone, utc("2026-03-29 02:30")), utc("2026-03-29 01:00"));
    cr_expect_eq(zone_utc_of_local(zone, utc("2026-07-01 00:00")), utc("2026-06-30 22:00"));
    zone_free(zone);
}

/* Havana 2026: clocks go from 0:00 to 1:00, and from 1:00 to 0:00. */
Test(zone_table, midnights_that_are_missing_or_doubled)
{
    struct zone *zone = make(-5 * HOUR_S,
        (struct zone_change[]){
            {utc("2026-03-08 05:00"), -4 * HOUR_S}, {utc("2026-11-01 05:00"), -5 * HOUR_S}},
        2);

    check_bucket(zone, LEVEL_DAY, "2026-03-08 05:00", "2026-03-08 05:00", "2026-03-09 04:00");
    check_bucket(zone, LEVEL_DAY, "2026-11-01 05:30", "2026-11-01 04:00", "2026-11-02 05:00");
    check_bucket(zone, LEVEL_MONTH, "2026-11-01 05:30", "2026-11-01 04:00", "2026-12-01 05:00");
    zone_free(zone);
}

/* St. John's until 2011: at 0:01 back to 23:01 of the day before; the new day goes on. */
Test(zone_table, clocks_set_back_over_midnight)
{
    struct zone *zone = make(-9000, (struct zone_change[]){{utc("2006-10-29 02:31"), -12600}}, 1);

    check_bucket(zone, LEVEL_DAY, "2006-10-29 02:30", "2006-10-29 02:30", "2006-10-30 03:30");
    check_bucket(zone, LEVEL_DAY, "2006-10-29 02:31", "2006-10-29 02:30", "2006-10-30 03:30");
    check_bucket(zone, LEVEL_HOUR, "2006-10-29 02:30", "2006-10-29 02:30", "2006-10-29 02:31");
    check_bucket(zone, LEVEL_HOUR, "2006-10-29 03:00", "2006-10-29 02:31", "2006-10-29 03:30");
    cr_expect_eq(bucket_day(zone, utc("2006-10-29 03:00")), utc("2006-10-29 00:00") / DAY_S);
    zone_free(zone);
}

/* Apia had no 2011-12-30. */
Test(zone_table, a_day_that_was_skipped)
{
    struct zone *zone =
        make(-10 * HOUR_S, (struct zone_change[]){{utc("2011-12-30 10:00"), 14 * HOUR_S}}, 1);

    check_bucket(zone, LEVEL_DAY, "2011-12-30 09:59", "2011-12-29 10:00", "2011-12-30 10:00");
    check_bucket(zone, LEVEL_DAY, "2011-12-30 10:00", "2011-12-30 10:00", "2011-12-31 10:00");
    check_bucket(zone, LEVEL_MONTH, "2011-12-30 10:00", "2011-12-01 10:00", "2011-12-31 10:00");
    cr_expect_eq(zone_first_at(zone, utc("2011-12-30 00:00")), utc("2011-12-30 10:00"));
    zone_free(zone);
}

Test(zone_table, seconds_are_cut_off)
{
    struct zone *zone = make(-2670, (struct zone_change[]){{utc("1972-01-07 00:44") + 30, 0}}, 1);

    cr_expect_eq(zone_offset_s(zone, utc("1972-01-07 00:43")), -2700);
    cr_expect_eq(zone_offset_s(zone, utc("1972-01-07 00:44")), 0);
    zone_free(zone);
}

Test(zone_table, rules_repeat_for_ever)
{
    struct zone_rule rule;
    struct zone_change changes[2 * 404];
    const char *fault = NULL;

    cr_assert(zone_rule_parse(SLICE("CET-1CEST,M3.5.0,M10.5.0/3"), &rule));
    for (int64_t year = 2000; year < 2404; year++) {
        zone_rule_changes(&rule, year, &changes[2 * (year - 2000)]);
    }
    struct zone *zone =
        zone_make("Test/Zone", HOUR_S, changes, 2 * 404, true, utc("2002-01-01 00:00"), &fault);
    cr_assert_not_null(zone);
    for (int64_t year = 2000; year < 9999; year++) {
        struct zone_change two[2];

        zone_rule_changes(&rule, year, two);
        for (int i = 0; i < 2; i++) {
            struct zone_span span = zone_span_at(zone, two[i].at_s);

            if (span.from_s != two[i].at_s || span.offset_s != two[i].offset_s ||
                zone_span_at(zone, two[i].at_s - 1).to_s != two[i].at_s ||
                (i == 0 && span.to_s != two[1].at_s)) {
                cr_assert_fail("year %lld", (long long)year);
            }
        }
    }
    zone_free(zone);
}

Test(zone_table, what_no_zone_does)
{
    static const struct {
        struct zone_change changes[2];
        const char *fault;
    } cases[] = {
        {{{1000000, 0}, {1000000 - 60, 3600}}, "in order"},
        {{{1000000, 0}, {1000000 + 80000, 3600}}, "twice within a day"},
        {{{1000000, -23 * 3600}, {2000000, 3600}}, "by more than a day"}, /* at first it is +2 h */
        {{{1000000, 27 * 3600}, {2000000, 3600}}, "more than a day"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *fault = "";

        cr_expect_null(zone_make("Test/Zone", 7200, cases[i].changes, 2, false, 0, &fault));
        cr_expect_not_null(strstr(fault, cases[i].fault), "case %zu: %s", i, fault);
    }
}
