/* zone.h - where the hours, days and months of a zone begin.
 *
 * Layer: storage, pure.  Thread-safe; a zone is immutable once made.
 *
 * A zone is a table of changes of its offset from UTC.  Where the rules of a zone go on for ever
 * (daylight saving time each year) the table covers 400 years of them, after which the calendar,
 * weekdays included, repeats.  Offsets and changes are whole minutes (cut off, for the one zone
 * that had seconds since 1970), so that each border of a bucket is a whole minute of UTC too.
 * Changes before 1969 are not kept: no event is that old.
 */
#ifndef STORAGE_TIME_ZONE_H
#define STORAGE_TIME_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZONE_NAME_MAX 63

struct zone;

/* UTC, static. */
const struct zone *zone_utc(void);

/* "Europe/Berlin", as it was asked for. */
const char *zone_name(const struct zone *zone);

/* Seconds to add to UTC to get the zone's local time at @at_s. */
int64_t zone_offset_s(const struct zone *zone, int64_t at_s);

/* A time in which the offset stays the same: [from_s, to_s), INT64_MIN and INT64_MAX where there is
 * no change. */
struct zone_span {
    int64_t from_s, to_s, offset_s;
};
struct zone_span zone_span_at(const struct zone *zone, int64_t at_s);

/* The first instant at which the zone's clocks show @local_s or later (@local_s: what UTC's clocks
 * show at that epoch second).  So a midnight that comes twice is the first one, and one that is
 * skipped is the first instant behind the gap. */
int64_t zone_first_at(const struct zone *zone, int64_t local_s);

/* The instant at which the zone's clocks show @local_s: the first one, if they do so twice; as far
 * behind the beginning of the gap as it would have been without the change, if they never do (what
 * RFC 5545 says). */
int64_t zone_utc_of_local(const struct zone *zone, int64_t local_s);

/* ---- making zones: zone_file.c ---- */

struct zone_change {
    int64_t at_s, offset_s; /* from at_s on */
};

#define ZONE_ERA_S (INT64_C(146097) * 86400) /* 400 years */

/* A zone with @first_offset_s until the first of @n changes in order of time.  @repeats: from
 * @repeats_s on, for an era and a year at least, the changes are those of any later era; else the
 * last one holds for ever.  @name has at most ZONE_NAME_MAX bytes.  NULL, and *ret_fault says why:
 * changes out of order, by more than a day, or less than a day apart (then days could have more
 * hours than anybody has room for); no memory.  Free with zone_free. */
struct zone *zone_make(const char *name, int64_t first_offset_s, const struct zone_change *changes,
    size_t n, bool repeats, int64_t repeats_s, const char **ret_fault);
void zone_free(struct zone *zone);

/* ---- the calendar ---- */

/* Proleptic Gregorian calendar: days since 1970-01-01 of a date (month 1..12, day 1..31), and back.
 * Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
struct civil_date {
    int64_t year;
    int month, day;
};
int64_t civil_to_days(struct civil_date date);
struct civil_date civil_from_days(int64_t days);

#endif
