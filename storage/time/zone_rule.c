#include "storage/time/zone_rule.h"

#include "storage/time/units.h"

#define HOURS_MAX 167

/* Each take function cuts what it reads off the front of @rest.  False: something else is there. */

/* Take a number of one to three digits, from @min to @max. */
static bool take_number(struct slice *rest, int64_t min, int64_t max, int64_t *ret)
{
    int64_t value = 0;
    size_t n = 0;
    while (n < rest->n && n < 3 && rest->p[n] >= '0' && rest->p[n] <= '9') {
        value = value * 10 + (rest->p[n++] - '0');
    }
    rest->p += n;
    rest->n -= n;
    *ret = value;
    return n > 0 && value >= min && value <= max;
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_quoted(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-';
}

/* Take a name, "CET" or "<+0545>", which is not used. */
static bool take_name(struct slice *rest)
{
    bool quoted = slice_take(rest, '<');
    size_t n = 0;
    while (n < rest->n && (quoted ? is_quoted(rest->p[n]) : is_letter(rest->p[n]))) {
        n++;
    }
    rest->p += n;
    rest->n -= n;
    return n >= 3 && (!quoted || slice_take(rest, '>'));
}

/* Take a time, "[+-]hh[:mm[:ss]]". */
static bool take_time(struct slice *rest, int64_t hours_max, int64_t *ret_s)
{
    bool negative = slice_take(rest, '-');
    if (!negative) {
        (void)slice_take(rest, '+');
    }
    int64_t hours;
    if (!take_number(rest, 0, hours_max, &hours)) {
        return false;
    }
    int64_t minutes = 0;
    int64_t seconds = 0;
    if (slice_take(rest, ':')) {
        if (!take_number(rest, 0, 59, &minutes)) {
            return false;
        }
        if (slice_take(rest, ':') && !take_number(rest, 0, 59, &seconds)) {
            return false;
        }
    }
    *ret_s = (hours * HOUR_S + minutes * MINUTE_S + seconds) * (negative ? -1 : 1);
    return true;
}

/* Take a date with its comma, ",M3.5.0/2". */
static bool take_date(struct slice *rest, struct zone_date *ret)
{
    *ret = (struct zone_date){.kind = ZONE_DATE_DAY, .time_s = 2 * HOUR_S};
    if (!slice_take(rest, ',')) {
        return false;
    }
    bool ok;
    if (slice_take(rest, 'M')) {
        ret->kind = ZONE_DATE_WEEKDAY;
        ok = take_number(rest, 1, 12, &ret->month) && slice_take(rest, '.') &&
             take_number(rest, 1, 5, &ret->week) && slice_take(rest, '.') &&
             take_number(rest, 0, 6, &ret->day);
    } else if (slice_take(rest, 'J')) {
        ret->kind = ZONE_DATE_JULIAN;
        ok = take_number(rest, 1, 365, &ret->day);
    } else {
        ok = take_number(rest, 0, 365, &ret->day);
    }
    return ok && (!slice_take(rest, '/') || take_time(rest, HOURS_MAX, &ret->time_s));
}

bool zone_rule_parse(struct slice text, struct zone_rule *ret)
{
    struct zone_rule rule = {0};
    if (!take_name(&text) || !take_time(&text, 24, &rule.standard_s)) {
        return false;
    }
    rule.standard_s = -rule.standard_s; /* POSIX offsets are positive west of Greenwich */
    if (text.n == 0) {
        *ret = rule;
        return true;
    }
    rule.has_saving = true;
    rule.saving_s = rule.standard_s + HOUR_S;
    if (!take_name(&text)) {
        return false;
    }
    if (text.n > 0 && text.p[0] != ',') {
        if (!take_time(&text, 24, &rule.saving_s)) {
            return false;
        }
        rule.saving_s = -rule.saving_s;
    }
    if (!take_date(&text, &rule.begins) || !take_date(&text, &rule.ends) || text.n != 0) {
        return false;
    }
    *ret = rule;
    return true;
}

/* Days since 1970 of a rule's date in @year. */
static int64_t date_days(const struct zone_date *date, int64_t year)
{
    int64_t new_year = civil_to_days((struct civil_date){year, 1, 1});
    switch (date->kind) {
    case ZONE_DATE_DAY:
        return new_year + date->day;
    case ZONE_DATE_JULIAN: /* day 60 is always the 1st of March */
        return new_year + date->day - 1 + (date->day >= 60 && civil_month_days(year, 2) == 29);
    case ZONE_DATE_WEEKDAY:
        break;
    }
    int64_t first = civil_to_days((struct civil_date){year, (int)date->month, 1});
    int64_t next = first + civil_month_days(year, (int)date->month);
    int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
    int64_t day = first + (date->day - weekday + 7) % 7 + (date->week - 1) * 7;
    while (day >= next) { /* week 5 is the month's last one */
        day -= 7;
    }
    return day;
}

void zone_rule_changes(const struct zone_rule *rule, int64_t year, struct zone_change ret[2])
{
    struct zone_change begins = {
        date_days(&rule->begins, year) * DAY_S + rule->begins.time_s - rule->standard_s,
        rule->saving_s};
    struct zone_change ends = {
        date_days(&rule->ends, year) * DAY_S + rule->ends.time_s - rule->saving_s,
        rule->standard_s};
    bool in_order = begins.at_s < ends.at_s;
    ret[0] = in_order ? begins : ends;
    ret[1] = in_order ? ends : begins;
}
