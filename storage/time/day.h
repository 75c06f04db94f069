/* day.h - the days by which the activity of users is counted.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * The activity of a user is remembered as the days on which the user did something.  A day is a
 * date of the site's own time zone, as a number: days since 1970-01-01.
 */
#ifndef STORAGE_TIME_DAY_H
#define STORAGE_TIME_DAY_H

#include "storage/time/closed.h"

/* The action that every event with a user counts for. */
#define ACTION_ACTIVE SLICE("active")

struct activity_day {
    int64_t day;       /* days since 1970-01-01 */
    int64_t expire_ms; /* UTC milliseconds: the end of the day's keep time; 0: it never expires */
};

/* The day that holds @at_s (see bucket_day()), and when it expires by @retention. */
struct activity_day activity_day_make(
    const struct zone *zone, const struct retention *retention, int64_t at_s);

#endif
