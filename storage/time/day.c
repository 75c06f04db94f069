#include "storage/time/day.h"

#include "storage/time/write_plan.h"

int64_t activity_day_of(const struct zone *zone, int64_t at_s)
{
    int64_t start_s = bucket_at(zone, LEVEL_DAY, at_s).start_s;
    int64_t local_s = start_s + zone_offset_s(zone, start_s);
    return local_s / 86400 - (local_s % 86400 < 0);
}

struct activity_day activity_day_make(
    const struct zone *zone, const struct retention *retention, int64_t at_s)
{
    struct bucket bucket = bucket_at(zone, LEVEL_DAY, at_s);
    return (struct activity_day){.day = activity_day_of(zone, at_s),
        .expire_ms = expiry_ms(bucket.end_s, retention->keep_s[LEVEL_DAY])};
}
