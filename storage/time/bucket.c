#include "storage/time/bucket.h"

#include "storage/time/units.h"

/* Minutes are those of UTC: every offset is a whole number of them. */
static struct bucket minute_at(int64_t at_s)
{
    int64_t start_s = floor_to(at_s, MINUTE_S);
    return (struct bucket){LEVEL_MINUTE, start_s, start_s + MINUTE_S};
}

struct bucket bucket_hour_part(const struct zone *zone, int64_t length_s, int64_t at_s)
{
    struct zone_span span = zone_span_at(zone, at_s);
    int64_t start_s = floor_to(at_s + span.offset_s, length_s) - span.offset_s;
    int64_t end_s = start_s + length_s;
    return (struct bucket){LEVEL_HOUR, start_s > span.from_s ? start_s : span.from_s,
        end_s < span.to_s ? end_s : span.to_s};
}

int64_t bucket_day(const struct zone *zone, int64_t at_s)
{
    int64_t days = floor_div(at_s + zone_offset_s(zone, at_s), DAY_S);
    while (zone_first_at(zone, (days + 1) * DAY_S) <= at_s) {
        days++; /* clocks were set back over midnight: the new day goes on */
    }
    return days;
}

static struct bucket day_at(const struct zone *zone, int64_t at_s)
{
    int64_t days = bucket_day(zone, at_s);
    return (struct bucket){
        LEVEL_DAY, zone_first_at(zone, days * DAY_S), zone_first_at(zone, (days + 1) * DAY_S)};
}

static struct bucket month_at(const struct zone *zone, int64_t at_s)
{
    struct civil_date first = civil_from_days(bucket_day(zone, at_s));
    first.day = 1;
    int64_t days = civil_to_days(first);
    int64_t end_days = days + civil_month_days(first.year, first.month);
    return (struct bucket){
        LEVEL_MONTH, zone_first_at(zone, days * DAY_S), zone_first_at(zone, end_days * DAY_S)};
}

struct bucket bucket_at(const struct zone *zone, enum level level, int64_t at_s)
{
    switch (level) {
    case LEVEL_MINUTE:
        break;
    case LEVEL_HOUR:
        return bucket_hour_part(zone, HOUR_S, at_s);
    case LEVEL_DAY:
        return day_at(zone, at_s);
    case LEVEL_MONTH:
        return month_at(zone, at_s);
    }
    return minute_at(at_s);
}

const char *level_name(enum level level)
{
    static const char *const names[LEVELS] = {
        [LEVEL_MINUTE] = "minute",
        [LEVEL_HOUR] = "hour",
        [LEVEL_DAY] = "day",
        [LEVEL_MONTH] = "month",
    };
    return names[level];
}
