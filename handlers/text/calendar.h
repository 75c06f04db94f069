/* calendar.h - from an instant to another one by the clocks and the calendar of a zone.
 *
 * Layer: handlers, pure.  Thread-safe.  Instants are UTC epoch seconds of the years 1970 to 9999.
 *
 * A unit is the letter that people write behind "now":
 *
 *     s m h       a second, 60 seconds, 3600 seconds, also where the clocks are changed
 *     d w M y     a day, week, month and year of the zone's calendar; weeks begin on Monday
 */
#ifndef HANDLERS_TEXT_CALENDAR_H
#define HANDLERS_TEXT_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/time/zone.h"

#define CALENDAR_LAST_S INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

/* The most units that calendar_shift() goes.  So many seconds from 1970 lead beyond the year 9999,
 * and so many years do not overflow. */
#define CALENDAR_SHIFT_MAX CALENDAR_LAST_S

/* Go @by units later, or earlier if @by is negative; at most CALENDAR_SHIFT_MAX either way.  Days
 * and longer units keep the time of day.  A day that a month does not have becomes the month's
 * last.  The result may lie before 1970 or after the year 9999.  False, with @at_s untouched: there
 * is no such unit. */
bool calendar_shift(const struct zone *zone, char unit, int64_t by, int64_t *at_s) MUST_CHECK;

/* Go down to the beginning of the unit, which may lie before 1970.  False, with @at_s untouched:
 * there is no such unit. */
bool calendar_floor(const struct zone *zone, char unit, int64_t *at_s) MUST_CHECK;

#endif
