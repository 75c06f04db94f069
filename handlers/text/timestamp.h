/* timestamp.h - points in time as people write them.
 *
 * Layer: handlers, pure; `now` is an argument.  Thread-safe.  UTC epoch seconds.
 */
#ifndef HANDLERS_TEXT_TIMESTAMP_H
#define HANDLERS_TEXT_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/time/bucket.h"

/* RFC 3339 with an offset; lower-case t and z allowed; second 60 counts as 59; a fraction is cut
 * off. False, @ret_s untouched, for anything else (also for a time before 1970). */
bool timestamp_rfc3339(struct slice text, int64_t *ret_s);

/* A number as an event or a parameter gives it: from 10^11 on milliseconds, below seconds. */
int64_t timestamp_from_number(int64_t number);

enum timestamp_round { TIMESTAMP_DOWN, TIMESTAMP_UP };

/* A `from` or `to` parameter (already percent-decoded): RFC 3339 (a blank where the offset's sign
 * stands is read as '+'), YYYY-MM-DD (midnight in @zone), epoch seconds or milliseconds (all
 * digits), or relative: now, now-15m, now+1d, now/d, now-1M/M, now/d-1d+6h (steps from left to
 * right; units s m h d w M y; days to years in the zone's calendar, day clipped to the month's
 * length; '/' rounds down in @zone; weeks begin on Monday).  Times before 1970 or after 9999 are
 * refused, also on the way. Rounded to the minute by @round.  "now" stands for the current minute:
 * rounded up it is that minute's end, also at second 0; now-15m likewise, but now/d is midnight
 * itself.  *ret_is_now tells whether the text was plain "now" (so that the window follows the
 * clock). On failure returns false and *ret_detail says what is wrong (static text). */
bool timestamp_parameter(struct slice text, const struct zone *zone, int64_t now_ms,
    enum timestamp_round round, int64_t *ret_s, bool *ret_is_now, const char **ret_detail);

/* "2026-11-20T15:30:00Z".  @text holds 32 bytes. */
void timestamp_print(int64_t at_s, char text[32]);

#endif
