/* zone_rule.h - the rule by which a zone's clocks change each year: a POSIX TZ string.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * Such a string stands at the end of a zone's file: "CET-1CEST,M3.5.0,M10.5.0/3".  The rule says
 * what the clocks do in the years after those that the file lists.
 * Source: POSIX.1-2017, XBD 8.3, variable TZ, with the extension of RFC 8536: times of day from
 * -167 to 167 hours.
 */
#ifndef STORAGE_TIME_ZONE_RULE_H
#define STORAGE_TIME_ZONE_RULE_H

#include "storage/base/slice.h"
#include "storage/time/zone.h"

/* A day of each year, and a time of that day.
 *
 *     written   kind                 members
 *     Jn        ZONE_DATE_JULIAN     day: 1..365, the 29th of February is never counted
 *     n         ZONE_DATE_DAY        day: 0..365, the 29th of February is counted
 *     Mm.w.d    ZONE_DATE_WEEKDAY    month: 1..12; week: 1..5, 5 is the last one; day: 0 is Sunday
 */
struct zone_date {
    enum { ZONE_DATE_JULIAN, ZONE_DATE_DAY, ZONE_DATE_WEEKDAY } kind;
    int64_t month, week, day;
    int64_t time_s; /* after midnight; may be negative */
};

struct zone_rule {
    int64_t standard_s; /* offset from UTC, positive east of Greenwich */
    bool has_saving;
    int64_t saving_s;
    struct zone_date begins, ends; /* of saving time */
};

/* Read @text, all of it.  False, with @ret untouched: the text is no such rule, or has saving time
 * without dates. */
bool zone_rule_parse(struct slice text, struct zone_rule *ret) MUST_CHECK;

/* The two changes of @year, in order of time.  The rule has saving time.  If both come at the same
 * instant, the second one holds. */
void zone_rule_changes(const struct zone_rule *rule, int64_t year, struct zone_change ret[2]);

#endif
