/* bucket.h - minutes, hours, days and months of a zone, and windows made of them.
 *
 * Layer: storage, pure (no I/O, no clock, no allocation).  Thread-safe.
 * Units: UTC epoch seconds everywhere; intervals are half-open, [start, end).
 * The levels nest: a month is cut into whole days, a day into whole hours, an hour into whole
 * minutes, all of one zone.
 *
 * An hour is what a zone's clocks show as one, without a change of the offset inside: one that
 * comes twice is two buckets, and one with a change inside is cut there.  A day begins at the first
 * instant at which clocks show its date, a month with its first day: a midnight that is skipped or
 * comes twice is that instant, and where clocks are set back over midnight the new day goes on.  So
 * a day has 23 or 25 hours, or others; a day that is skipped as a whole has no bucket.
 */
#ifndef STORAGE_TIME_BUCKET_H
#define STORAGE_TIME_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/time/zone.h"

enum level { LEVEL_MINUTE, LEVEL_HOUR, LEVEL_DAY, LEVEL_MONTH };
#define LEVELS 4

struct window {
    int64_t from_s, to_s; /* [from_s, to_s), whole minutes */
};

struct bucket {
    enum level level;
    int64_t start_s, end_s;
};

/* The bucket of @level that holds @at_s (any time within 10^15 s of 1970, also before it). */
struct bucket bucket_at(const struct zone *zone, enum level level, int64_t at_s);

/* The same for a part of an hour of @length_s (or one hour), cut at changes of the offset likewise;
 * its level says @level. */
struct bucket bucket_hour_part(
    const struct zone *zone, enum level level, int64_t length_s, int64_t at_s);

/* The date of the day bucket that holds @at_s, as days since 1970-01-01. */
int64_t bucket_day(const struct zone *zone, int64_t at_s);

/* "minute", "hour", "day", "month". */
const char *level_name(enum level level);

#endif
