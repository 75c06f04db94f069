#include "storage/time/day.h"

#include "storage/time/write_plan.h"

struct activity_day activity_day_make(
    const struct zone *zone, const struct retention *retention, int64_t at_s)
{
    struct bucket bucket = bucket_at(zone, LEVEL_DAY, at_s);
    return (struct activity_day){.day = bucket_day(zone, at_s),
        .expire_ms = expiry_ms(bucket.end_s, retention->keep_s[LEVEL_DAY])};
}
