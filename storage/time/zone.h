/* zone.h - a time zone: how far its clocks are from UTC, and where its days begin.
 *
 * Layer: storage, pure.  Thread-safe: a zone does not change once it is made.
 *
 * A zone is a table of the changes of its offset from UTC.  The rules of many zones go on for ever,
 * as daylight saving time does each year.  For such a zone the table covers 400 years; after 400
 * years the calendar repeats, weekdays included, and so do the changes.
 *
 * Offsets and changes are whole minutes, so each border of a bucket is a whole minute of UTC too.
 * One zone has had an offset with seconds since 1970; the seconds are cut off.  Changes before 1969
 * are not kept, because no event is that old.
 */
#ifndef STORAGE_TIME_ZONE_H
#define STORAGE_TIME_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"

#define ZONE_NAME_MAX 63 /* bytes, without the NUL */

struct zone;

/* UTC: static, not to be freed. */
const struct zone *zone_utc(void);

/* The name that the zone was made with, such as "Europe/Berlin".  Lives as long as the zone. */
const char *zone_name(const struct zone *zone);

/* The seconds to add to UTC to get the zone's local time at @at_s. */
int64_t zone_offset_s(const struct zone *zone, int64_t at_s);

/* A time in which the offset stays the same, [from_s, to_s).  INT64_MIN or INT64_MAX stand where
 * there is no change before or after. */
struct zone_span {
    int64_t from_s, to_s, offset_s;
};
struct zone_span zone_span_at(const struct zone *zone, int64_t at_s);

/* A local time is written as the epoch second at which UTC's clocks show the same.  Both functions
 * return an instant in UTC at which the zone's clocks show @local_s:
 *
 *                        zone_first_at()                     zone_utc_of_local()
 *     shown once         that instant                        that instant
 *     shown twice        the first of both                   the first of both
 *     never shown, as    the first instant behind the gap    as far behind the beginning of the
 *     a gap skips it                                         gap as without the change
 *
 * The last of these rules is RFC 5545's. */
int64_t zone_first_at(const struct zone *zone, int64_t local_s);
int64_t zone_utc_of_local(const struct zone *zone, int64_t local_s);

/* ---- making zones: zone_file.c ---- */

struct zone_change {
    int64_t at_s, offset_s; /* the offset from at_s on */
};

#define ZONE_ERA_S (INT64_C(146097) * 86400) /* 400 years */

/* Make a zone with @first_offset_s until the first of @n changes in order of time.  @changes is
 * copied; @name has at most ZONE_NAME_MAX bytes.
 *
 * @repeats: the changes from @repeats_s on, which cover an era and a year at least, come again in
 * each later era.  Otherwise the last change holds for ever.
 *
 * Free with zone_free.  NULL: *ret_fault says why, a static text.  There is no memory, or the
 * changes are out of order, or one is larger than a day, or two are less than a day apart, so that
 * a day would have too many hours. */
struct zone *zone_make(const char *name, int64_t first_offset_s, const struct zone_change *changes,
    size_t n, bool repeats, int64_t repeats_s, const char **ret_fault) MUST_CHECK;
void zone_free(struct zone *zone); /* NULL is harmless */

/* ---- the calendar ---- */

/* The days since 1970-01-01 of a date, and the date of a number of days.  The calendar is the
 * proleptic Gregorian one: month is 1..12, day is 1..31.
 * Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
struct civil_date {
    int64_t year;
    int month, day;
};
int64_t civil_to_days(struct civil_date date);
struct civil_date civil_from_days(int64_t days);

/* The days of a month: 28 to 31. */
int civil_month_days(int64_t year, int month);

#endif
