/* zone_rule.h - the rule by which a zone's clocks change each year: a POSIX TZ string.
 *
 * Layer: storage, pure.  Thread-safe.
 * Source: POSIX.1-2017, XBD 8.3, variable TZ, with the extension of RFC 8536 (times of day from
 * -167 to 167 hours).  It stands at the end of a TZif file: "CET-1CEST,M3.5.0,M10.5.0/3".
 */
#ifndef STORAGE_TIME_ZONE_RULE_H
#define STORAGE_TIME_ZONE_RULE_H

#include "storage/base/slice.h"
#include "storage/time/zone.h"

/* A day of each year, and a time of that day. */
struct zone_date {
    enum { ZONE_DATE_JULIAN, ZONE_DATE_DAY, ZONE_DATE_WEEKDAY } kind;
    int64_t month, week, day; /* Jn: day 1..365 without leap days; n: 0..365; Mm.w.d */
    int64_t time_s;
};

struct zone_rule {
    int64_t standard_s; /* offset, positive east */
    bool has_saving;
    int64_t saving_s;
    struct zone_date begins, ends; /* of saving time */
};

/* Read @text whole.  False: it is no such rule (also one with saving time and no dates). */
bool zone_rule_parse(struct slice text, struct zone_rule *ret);

/* The two changes of @year, in order of time; a rule without saving time has none.  (Of two at the
 * same instant the second one holds.) */
void zone_rule_changes(const struct zone_rule *rule, int64_t year, struct zone_change ret[2]);

#endif
