/* bucket.h - the minutes, hours, days and months of a time zone, as intervals of UTC.
 *
 * Layer: storage, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 * Counts are kept per bucket: per minute, hour, day and month.  A window is the interval that a
 * question asks about; it is answered from buckets.  All times are seconds since 1970 in UTC, and
 * all intervals are half-open, [start, end).
 *
 * The levels nest, all in one zone: a month is cut into whole days, a day into whole hours, an hour
 * into whole minutes.  What a zone's clocks do decides where the cuts are:
 *
 *     hour    the time in which the clocks show one hour, without a change of the offset inside.
 *             An hour that comes twice is two buckets.  A change inside an hour cuts that hour.
 *     day     begins at the first instant at which the clocks show the day's date.  A midnight that
 *             is skipped or comes twice is that instant too.  Where clocks are set back over
 *             midnight the new day goes on.  So a day can have 23 or 25 hours, or another number.
 *             A date that is skipped as a whole has no bucket.
 *     month   begins with its first day.
 */
#ifndef STORAGE_TIME_BUCKET_H
#define STORAGE_TIME_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/time/zone.h"

/* The sizes of buckets, from fine to coarse. */
enum level { LEVEL_MINUTE, LEVEL_HOUR, LEVEL_DAY, LEVEL_MONTH };
#define LEVELS 4

struct window {
    int64_t from_s, to_s; /* [from_s, to_s), whole minutes */
};

struct bucket {
    enum level level;
    int64_t start_s, end_s;
};

/* The bucket of @level that holds @at_s.  @at_s lies within 10^15 s of 1970, before or after. */
struct bucket bucket_at(const struct zone *zone, enum level level, int64_t at_s);

/* The part of an hour that holds @at_s, cut at changes of the offset as an hour is.  @length_s is
 * the length of a part: a divisor of an hour, or 3600.  The result's level is LEVEL_HOUR. */
struct bucket bucket_hour_part(const struct zone *zone, int64_t length_s, int64_t at_s);

/* The date of the day bucket that holds @at_s, as days since 1970-01-01. */
int64_t bucket_day(const struct zone *zone, int64_t at_s);

/* "minute", "hour", "day", "month": static text. */
const char *level_name(enum level level);

#endif
