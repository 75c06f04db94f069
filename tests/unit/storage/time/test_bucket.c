#include "storage/time/bucket.h"

#include <criterion/criterion.h>
#include <time.h>

static int64_t utc(int year, int month, int day, int hour, int minute, int second)
{
    struct tm tm = {.tm_year = year - 1900,
        .tm_mon = month - 1,
        .tm_mday = day,
        .tm_hour = hour,
        .tm_min = minute,
        .tm_sec = second};

    return timegm(&tm);
}

static void check(enum level level, int64_t at_s, int64_t start_s, int64_t end_s)
{
    struct bucket bucket = bucket_at(zone_utc(), level, at_s);

    cr_expect(bucket.level == level && bucket.start_s == start_s && bucket.end_s == end_s,
        "%s at %lld: [%lld, %lld), not [%lld, %lld)", level_name(level), (long long)at_s,
        (long long)bucket.start_s, (long long)bucket.end_s, (long long)start_s, (long long)end_s);
}

Test(bucket, every_level)
{
    int64_t at_s = utc(2026, 11, 20, 15, 30, 59);

    check(LEVEL_MINUTE, at_s, utc(2026, 11, 20, 15, 30, 0), utc(2026, 11, 20, 15, 31, 0));
    check(LEVEL_HOUR, at_s, utc(2026, 11, 20, 15, 0, 0), utc(2026, 11, 20, 16, 0, 0));
    check(LEVEL_DAY, at_s, utc(2026, 11, 20, 0, 0, 0), utc(2026, 11, 21, 0, 0, 0));
    check(LEVEL_MONTH, at_s, utc(2026, 11, 1, 0, 0, 0), utc(2026, 12, 1, 0, 0, 0));
}

Test(bucket, half_open_at_a_new_year)
{
    int64_t year_s = utc(2027, 1, 1, 0, 0, 0);

    check(LEVEL_MINUTE, year_s, year_s, year_s + 60);
    check(LEVEL_HOUR, year_s, year_s, year_s + 3600);
    check(LEVEL_DAY, year_s, year_s, year_s + 86400);
    check(LEVEL_MONTH, year_s, year_s, utc(2027, 2, 1, 0, 0, 0));
    check(LEVEL_MINUTE, year_s - 1, year_s - 60, year_s);
    check(LEVEL_HOUR, year_s - 1, year_s - 3600, year_s);
    check(LEVEL_DAY, year_s - 1, year_s - 86400, year_s);
    check(LEVEL_MONTH, year_s - 1, utc(2026, 12, 1, 0, 0, 0), year_s);
}

Test(bucket, februaries)
{
    check(LEVEL_MONTH, utc(2024, 2, 29, 23, 59, 59), utc(2024, 2, 1, 0, 0, 0),
        utc(2024, 2, 1, 0, 0, 0) + 29 * 86400);
    check(LEVEL_MONTH, utc(2025, 2, 28, 23, 59, 59), utc(2025, 2, 1, 0, 0, 0),
        utc(2025, 2, 1, 0, 0, 0) + 28 * 86400);
    check(LEVEL_MONTH, utc(2100, 2, 1, 0, 0, 0), utc(2100, 2, 1, 0, 0, 0),
        utc(2100, 2, 1, 0, 0, 0) + 28 * 86400);
    check(
        LEVEL_DAY, utc(2024, 2, 29, 12, 0, 0), utc(2024, 2, 29, 0, 0, 0), utc(2024, 3, 1, 0, 0, 0));
}

Test(bucket, before_1970)
{
    check(LEVEL_MINUTE, -1, -60, 0);
    check(LEVEL_MINUTE, -60, -60, 0);
    check(LEVEL_MINUTE, -61, -120, -60);
    check(LEVEL_HOUR, -1, -3600, 0);
    check(LEVEL_DAY, -86400, -86400, 0);
    check(LEVEL_DAY, -86401, -172800, -86400);
    check(LEVEL_MONTH, -1, -31 * 86400, 0);
    check(
        LEVEL_MONTH, utc(1904, 2, 29, 1, 2, 3), utc(1904, 2, 1, 0, 0, 0), utc(1904, 3, 1, 0, 0, 0));
}

Test(bucket, levels_nest_and_tile)
{
    /* 7919 minutes: every minute of the hour and hour of the day comes up */
    for (int64_t at_s = utc(1950, 1, 1, 0, 0, 7); at_s < utc(2150, 1, 1, 0, 0, 0);
         at_s += 7919 * 60) {
        struct bucket part = bucket_at(zone_utc(), LEVEL_MINUTE, at_s);

        for (enum level level = LEVEL_MINUTE; level <= LEVEL_MONTH; level++) {
            struct bucket bucket = bucket_at(zone_utc(), level, at_s);
            struct bucket last = bucket_at(zone_utc(), level, bucket.end_s - 1);
            struct bucket next = bucket_at(zone_utc(), level, bucket.end_s);

            bool holds = bucket.start_s <= at_s && at_s < bucket.end_s;
            bool nests = bucket.start_s <= part.start_s && part.end_s <= bucket.end_s;
            bool tiles = last.start_s == bucket.start_s && next.start_s == bucket.end_s;

            if (!holds || !nests || !tiles)
                cr_assert_fail("%s at %lld", level_name(level), (long long)at_s);
            part = bucket;
        }
    }
}

Test(bucket, level_names)
{
    cr_assert_str_eq(level_name(LEVEL_MINUTE), "minute");
    cr_assert_str_eq(level_name(LEVEL_HOUR), "hour");
    cr_assert_str_eq(level_name(LEVEL_DAY), "day");
    cr_assert_str_eq(level_name(LEVEL_MONTH), "month");
}
