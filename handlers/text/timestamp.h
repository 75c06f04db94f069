/* timestamp.h - points in time as people write them.
 *
 * Layer: handlers, pure; `now` is an argument.  Thread-safe.  All results are UTC epoch seconds.
 *
 * Times before 1970 and after the year 9999 are refused everywhere.
 */
#ifndef HANDLERS_TEXT_TIMESTAMP_H
#define HANDLERS_TEXT_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/time/bucket.h"

/* Read RFC 3339 with an offset from UTC.  t and z may be lower-case, second 60 counts as 59, and a
 * fraction of a second is cut off.  False, with @ret_s untouched, for anything else. */
bool timestamp_rfc3339(struct slice text, int64_t *ret_s) MUST_CHECK;

/* The time that a whole number means: milliseconds from 10^11 on, seconds below. */
int64_t timestamp_from_number(int64_t number);

enum timestamp_round { TIMESTAMP_DOWN, TIMESTAMP_UP };

/* Read a parameter such as `from` or `to`, already percent-decoded:
 *
 *     2026-11-20T15:30:00+01:00    RFC 3339; a blank where the offset's sign stands is a '+'
 *     2026-11-20                   midnight in @zone
 *     1795185000, 1795185000000    epoch seconds or milliseconds, maybe with a fraction
 *     now, now-15m, now/d-1d+6h    now, and steps from left to right
 *
 * A step goes so many units later (+) or earlier (-), or down to the beginning of its unit (/).
 * The units are s m h d w M y.  Days and longer units are those of @zone's calendar; a day that a
 * month does not have becomes the month's last; weeks begin on Monday.
 *
 * The result is rounded to the minute, by @round: a part of a second counts, so 10:20:00.001 is
 * 10:21 where it is rounded up.  "now" stands for the current minute: rounded up it is the end of
 * that minute, also at second 0.  The same holds for now-15m, but now/d is midnight itself.
 * *ret_is_now: the text was just "now", so the window follows the clock.
 *
 * False: *ret_detail says what is wrong (static text), and the other results are untouched. */
bool timestamp_parameter(struct slice text, const struct zone *zone, int64_t now_ms,
    enum timestamp_round round, int64_t *ret_s, bool *ret_is_now, const char **ret_detail);

#define TIMESTAMP_TEXT 21

/* Write "2026-11-20T15:30:00Z" and a NUL.  @at_s lies in the years 0 to 9999. */
void timestamp_print(int64_t at_s, char text[TIMESTAMP_TEXT]);

#endif
