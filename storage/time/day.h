/* day.h - the days by which activity is counted: dates of a site's zone.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_TIME_DAY_H
#define STORAGE_TIME_DAY_H

#include "storage/time/closed.h"

/* The action that every event with a user sets. */
#define ACTION_ACTIVE SLICE("active")

struct activity_day {
    int64_t day;       /* since 1970-01-01 */
    int64_t expire_ms; /* end of its keep time; 0: never */
};

/* The day that holds @at_s: the date on which the zone's day begins. */
int64_t activity_day_of(const struct zone *zone, int64_t at_s);

/* The same, with when it expires. */
struct activity_day activity_day_make(
    const struct zone *zone, const struct retention *retention, int64_t at_s);

#endif
