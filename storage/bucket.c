#include "storage/bucket.h"

#define MINUTE_S 60
#define HOUR_S   3600
#define DAY_S    86400

/* The greatest multiple of @unit at or below @value. */
static int64_t floor_to(int64_t value, int64_t unit)
{
    int64_t rest = value % unit;

    return value - (rest < 0 ? rest + unit : rest);
}

static struct bucket local_month_at(int64_t local_s)
{
    struct civil_date first = civil_from_days(floor_to(local_s, DAY_S) / DAY_S);
    struct civil_date next;

    first.day = 1;
    next = first;
    if (++next.month > 12) {
        next.month = 1;
        next.year++;
    }
    return (struct bucket){LEVEL_MONTH, civil_to_days(first) * DAY_S, civil_to_days(next) * DAY_S};
}

static struct bucket local_bucket_at(enum level level, int64_t local_s)
{
    static const int64_t length_s[LEVELS] = {
        [LEVEL_MINUTE] = MINUTE_S, [LEVEL_HOUR] = HOUR_S, [LEVEL_DAY] = DAY_S};
    int64_t start_s;

    if (level == LEVEL_MONTH) {
        return local_month_at(local_s);
    }
    start_s = floor_to(local_s, length_s[level]);
    return (struct bucket){level, start_s, start_s + length_s[level]};
}

struct bucket bucket_at(const struct zone *zone, enum level level, int64_t at_s)
{
    /* One offset for both borders: right for every zone there is so far. */
    int64_t offset_s = zone_offset_s(zone, at_s);
    struct bucket local = local_bucket_at(level, at_s + offset_s);

    return (struct bucket){level, local.start_s - offset_s, local.end_s - offset_s};
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
