#include "storage/zone.h"

#define DAYS_PER_ERA 146097 /* 400 years: after them the calendar repeats */
#define EPOCH_DAY    719468 /* 1970-01-01, counted from 0000-03-01 */

struct zone {
    int64_t offset_s;
};

const struct zone *zone_utc(void)
{
    static const struct zone utc = {0};

    return &utc;
}

int64_t zone_offset_s(const struct zone *zone, int64_t at_s)
{
    (void)at_s;
    return zone->offset_s;
}

static int64_t floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* Years are counted from March, so that the leap day is the last day of its year and the months
 * before it have the same lengths in every year: 153 days in each five of them. */
int64_t civil_to_days(struct civil_date date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t months_since_march = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t day_of_year = (153 * months_since_march + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * DAYS_PER_ERA + day_of_era - EPOCH_DAY;
}

struct civil_date civil_from_days(int64_t days)
{
    int64_t since = days + EPOCH_DAY;
    int64_t era = floor_div(since, DAYS_PER_ERA);
    int64_t day_of_era = since - era * DAYS_PER_ERA;
    /* take out the leap days (each 4th, not each 100th, but the 400th year), then all years are
     * equal */
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
    int64_t months_since_march = (5 * day_of_year + 2) / 153;
    int64_t month = months_since_march < 10 ? months_since_march + 3 : months_since_march - 9;

    return (struct civil_date){
        .year = era * 400 + year_of_era + (month <= 2),
        .month = (int)month,
        .day = (int)(day_of_year - (153 * months_since_march + 2) / 5 + 1),
    };
}
