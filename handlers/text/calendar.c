#include "handlers/text/calendar.h"

#include <string.h>

#include "storage/time/bucket.h"
#include "storage/time/units.h"

/* What clocks and calendars in a zone show: a day since 1970 and the seconds of the day. */
struct local_time {
    int64_t days, clock_s;
};

static struct local_time local_at(const struct zone *zone, int64_t at_s)
{
    int64_t local_s = at_s + zone_offset_s(zone, at_s);
    int64_t days = bucket_day(zone_utc(), local_s);
    return (struct local_time){days, local_s - days * DAY_S};
}

static int64_t shift_months(int64_t days, int64_t by)
{
    struct civil_date date = civil_from_days(days);
    int64_t months = date.year * 12 + date.month - 1 + by; /* since the year 0 */
    if (months < 0) {
        return civil_to_days((struct civil_date){0, 1, 1}); /* any day before 1970 is too early */
    }
    date.year = months / 12;
    date.month = (int)(months % 12) + 1;
    int length = civil_month_days(date.year, date.month);
    if (date.day > length) {
        date.day = length;
    }
    return civil_to_days(date);
}

bool calendar_shift(const struct zone *zone, char unit, int64_t by, int64_t *at_s)
{
    struct local_time local = local_at(zone, *at_s);
    switch (unit) {
    case 's':
        *at_s += by;
        return true;
    case 'm':
        *at_s += by * MINUTE_S;
        return true;
    case 'h':
        *at_s += by * HOUR_S;
        return true;
    case 'd':
        local.days += by;
        break;
    case 'w':
        local.days += by * 7;
        break;
    case 'M':
        local.days = shift_months(local.days, by);
        break;
    case 'y':
        local.days = shift_months(local.days, by * 12);
        break;
    default:
        return false;
    }
    *at_s = zone_utc_of_local(zone, local.days * DAY_S + local.clock_s);
    return true;
}

bool calendar_floor(const struct zone *zone, char unit, int64_t *at_s)
{
    static const char letters[LEVELS] = {
        [LEVEL_MINUTE] = 'm', [LEVEL_HOUR] = 'h', [LEVEL_DAY] = 'd', [LEVEL_MONTH] = 'M'};
    const char *letter = memchr(letters, unit, LEVELS);
    int64_t days = bucket_day(zone, *at_s);
    if (letter != NULL) {
        *at_s = bucket_at(zone, (enum level)(letter - letters), *at_s).start_s;
        return true;
    }
    switch (unit) {
    case 's':
        return true;
    case 'w':
        days -= (days + 3) % 7; /* day 0 was a Thursday; days >= -1 */
        break;
    case 'y':
        days = civil_to_days((struct civil_date){civil_from_days(days).year, 1, 1});
        break;
    default:
        return false;
    }
    *at_s = zone_first_at(zone, days * DAY_S);
    return true;
}
