#include "storage/time/day.h"

#include <criterion/criterion.h>

#include "storage/time/units.h"

TestSuite(activity_day, .timeout = 60);

Test(activity_day, days_are_dates)
{
    cr_expect_eq(bucket_day(zone_utc(), 0), 0);
    cr_expect_eq(bucket_day(zone_utc(), DAY_S - 1), 0);
    cr_expect_eq(bucket_day(zone_utc(), DAY_S), 1);
    cr_expect_eq(bucket_day(zone_utc(), -1), -1);
    cr_expect_eq(bucket_day(zone_utc(), INT64_C(1795187834)),
        civil_to_days((struct civil_date){2026, 11, 20}));
}

Test(activity_day, kept_from_its_end_on)
{
    struct retention retention = {.keep_s = {0, 0, 10 * DAY_S, 0}};
    struct activity_day day = activity_day_make(zone_utc(), &retention, 5 * DAY_S + 17);
    cr_expect_eq(day.day, 5);
    cr_expect_eq(day.expire_ms, 16 * DAY_S * 1000);
    retention.keep_s[LEVEL_DAY] = KEEP_FOREVER;
    day = activity_day_make(zone_utc(), &retention, 5 * DAY_S);
    cr_expect_eq(day.expire_ms, 0);
}
