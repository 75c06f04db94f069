/* zone.h - where the hours, days and months of a site begin.
 *
 * Layer: storage, pure.  Thread-safe; a zone is immutable once made.
 * UTC is the only zone so far; buckets, covers, writes and rollups all take a zone, so that a
 * reader of the zoneinfo files can be put behind these functions without touching them.
 */
#ifndef STORAGE_ZONE_H
#define STORAGE_ZONE_H

#include <stdint.h>

struct zone;

/* UTC, static. */
const struct zone *zone_utc(void);

/* Seconds to add to UTC to get the zone's local time at @at_s. */
int64_t zone_offset_s(const struct zone *zone, int64_t at_s);

/* Proleptic Gregorian calendar: days since 1970-01-01 of a date (month 1..12, day 1..31), and back.
 * Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
struct civil_date {
    int64_t year;
    int month, day;
};
int64_t civil_to_days(struct civil_date date);
struct civil_date civil_from_days(int64_t days);

#endif
