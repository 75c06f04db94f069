#include "storage/time/zone.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <time.h>

Test(zone, utc_has_no_offset)
{
    cr_assert_eq(zone_offset_s(zone_utc(), 0), 0);
    cr_assert_eq(zone_offset_s(zone_utc(), -1), 0);
    cr_assert_eq(zone_offset_s(zone_utc(), INT64_C(253402300799)), 0);
}

static bool same(struct civil_date date, int64_t year, int month, int day)
{
    return date.year == year && date.month == month && date.day == day;
}

static void check_days(int64_t year, int month, int day, int64_t days)
{
    struct civil_date date = civil_from_days(days);

    cr_expect_eq(civil_to_days((struct civil_date){year, month, day}), days, "%lld-%d-%d",
        (long long)year, month, day);
    cr_expect(same(date, year, month, day), "day %lld", (long long)days);
}

Test(zone, known_days)
{
    check_days(1970, 1, 1, 0);
    check_days(1969, 12, 31, -1);
    check_days(2000, 2, 29, 11016);
    check_days(2000, 3, 1, 11017);
    check_days(2026, 11, 20, 20777);
    check_days(9999, 12, 31, 2932896);
    check_days(1600, 2, 29, -135081);
    check_days(0, 1, 1, -719528);
    check_days(-1, 12, 31, -719529);
}

/* Counts the days one by one with the calendar's own rules, so neither function is its own witness.
 */
Test(zone, every_day_of_twelve_thousand_years)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t days = civil_to_days((struct civil_date){-2000, 1, 1});

    cr_assert_eq(days, -1450013);
    for (int64_t year = -2000; year < 10000; year++) {
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        for (int month = 1; month <= 12; month++) {
            int length = lengths[month - 1] + (month == 2 && leap);

            if (civil_month_days(year, month) != length)
                cr_assert_fail("%lld-%d", (long long)year, month);
            for (int day = 1; day <= length; day++, days++) {
                struct civil_date date = civil_from_days(days);

                /* not cr_assert: it reports to another process each time, and this is 4 million */
                if (!same(date, year, month, day) || civil_to_days(date) != days)
                    cr_assert_fail("day %lld", (long long)days);
            }
        }
    }
}

Test(zone, agrees_with_libc_far_away)
{
    for (int64_t days = -300000000; days < 300000000; days += 1234567) {
        time_t at = (time_t)(days * 86400);
        struct civil_date date = civil_from_days(days);
        struct tm tm;

        cr_assert_not_null(gmtime_r(&at, &tm));
        cr_assert(same(date, tm.tm_year + INT64_C(1900), tm.tm_mon + 1, tm.tm_mday), "day %lld",
            (long long)days);
        cr_assert_eq(civil_to_days(date), days);
    }
}
