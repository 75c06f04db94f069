#include "handlers/text/timestamp.h"

#include "handlers/text/ascii.h"
#include "handlers/text/calendar.h"
#include "storage/time/units.h"

#define FIRST_AS_MS   INT64_C(100000000000) /* 10^11 s are in the year 5138, 10^11 ms in 1973 */
#define NUMBER_DIGITS 18                    /* so many digits always fit into 63 bits */

/* The functions below return a fault, a text that says what is wrong; NULL: nothing is. */
static const char not_a_time[] =
    "not a time: give RFC 3339 with an offset, YYYY-MM-DD, epoch seconds or ms, or now-15m";
static const char not_relative[] =
    "not a time: behind now stand steps such as -15m, +1d or /d, with the units s m h d w M y";
static const char no_offset[] = "the offset from UTC is missing: append Z or one such as +01:00";
static const char no_such_date[] = "no such date";
static const char no_such_clock[] = "no such time of day";
static const char no_such_offset[] = "no such offset from UTC";
static const char too_early[] = "before 1970";
static const char too_late[] = "after the year 9999";

static const char *range_fault(int64_t at_s)
{
    if (at_s < 0) {
        return too_early;
    }
    return at_s > CALENDAR_LAST_S ? too_late : NULL;
}

/* The take functions cut what they find off the front of @rest. */
static void skip(struct slice *rest, size_t n)
{
    rest->p += n;
    rest->n -= n;
}

static size_t count_digits(struct slice rest)
{
    size_t n = 0;
    while (n < rest.n && ascii_is_digit(rest.p[n])) {
        n++;
    }
    return n;
}

/* Take exactly @n digits, at most NUMBER_DIGITS.  What follows them is not looked at. */
static bool take_digits(struct slice *rest, size_t n, int64_t *ret)
{
    if (rest->n < n) {
        return false;
    }
    int64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (!ascii_is_digit(rest->p[i])) {
            return false;
        }
        value = value * 10 + (rest->p[i] - '0');
    }
    *ret = value;
    skip(rest, n);
    return true;
}

/* Take "2026-11-20", as days since 1970. */
static const char *take_date(struct slice *rest, int64_t *ret_days)
{
    int64_t year, month, day;
    if (!take_digits(rest, 4, &year) || !slice_take(rest, '-') || !take_digits(rest, 2, &month) ||
        !slice_take(rest, '-') || !take_digits(rest, 2, &day)) {
        return not_a_time;
    }
    if (month < 1 || month > 12 || day < 1 || day > civil_month_days(year, (int)month)) {
        return no_such_date;
    }
    *ret_days = civil_to_days((struct civil_date){year, (int)month, (int)day});
    return NULL;
}

/* Do @digits, which stood behind a dot, make more than 0? */
static bool is_part(struct slice digits)
{
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] != '0') {
            return true;
        }
    }
    return false;
}

/* Take "15:30:00.125", as seconds since midnight.  *ret_part: there is a part of a second more. */
static const char *take_clock(struct slice *rest, int64_t *ret_s, bool *ret_part)
{
    int64_t hour, minute, second;
    if (!take_digits(rest, 2, &hour) || !slice_take(rest, ':') || !take_digits(rest, 2, &minute) ||
        !slice_take(rest, ':') || !take_digits(rest, 2, &second)) {
        return not_a_time;
    }
    if (slice_take(rest, '.')) {
        size_t n = count_digits(*rest);
        if (n == 0) {
            return not_a_time;
        }
        *ret_part = is_part((struct slice){rest->p, n});
        skip(rest, n);
    }
    if (hour > 23 || minute > 59 || second > 60) {
        return no_such_clock;
    }
    if (second == 60) { /* a leap second, which epoch seconds do not know */
        second = 59;
    }
    *ret_s = hour * HOUR_S + minute * MINUTE_S + second;
    return NULL;
}

/* Take "Z" or "+01:00", as the seconds that local time is ahead of UTC. */
static const char *take_offset(struct slice *rest, bool blank_is_plus, int64_t *ret_s)
{
    if (rest->n == 0) {
        return no_offset;
    }
    *ret_s = 0;
    if (slice_take(rest, 'Z') || slice_take(rest, 'z')) {
        return NULL;
    }
    bool west = slice_take(rest, '-');
    if (!west && !slice_take(rest, '+') && !(blank_is_plus && slice_take(rest, ' '))) {
        return not_a_time;
    }
    int64_t hours, minutes;
    if (!take_digits(rest, 2, &hours) || !slice_take(rest, ':') ||
        !take_digits(rest, 2, &minutes)) {
        return not_a_time;
    }
    if (hours > 23 || minutes > 59) {
        return no_such_offset;
    }
    *ret_s = (hours * HOUR_S + minutes * MINUTE_S) * (west ? -1 : 1);
    return NULL;
}

/* Read RFC 3339.  *ret_part: there is a part of a second more. */
static const char *read_rfc3339(
    struct slice text, bool blank_is_plus, int64_t *ret_s, bool *ret_part)
{
    int64_t days, clock_s, offset_s;
    const char *fault = take_date(&text, &days);
    if (fault != NULL) {
        return fault;
    }
    if (!slice_take(&text, 'T') && !slice_take(&text, 't')) {
        return not_a_time;
    }
    fault = take_clock(&text, &clock_s, ret_part);
    if (fault != NULL) {
        return fault;
    }
    fault = take_offset(&text, blank_is_plus, &offset_s);
    if (fault != NULL) {
        return fault;
    }
    if (text.n > 0) {
        return not_a_time;
    }
    int64_t at_s = days * DAY_S + clock_s - offset_s;
    fault = range_fault(at_s);
    if (fault == NULL) {
        *ret_s = at_s;
    }
    return fault;
}

bool timestamp_rfc3339(struct slice text, int64_t *ret_s)
{
    bool part = false; /* a part of a second is cut off */
    return read_rfc3339(text, false, ret_s, &part) == NULL;
}

int64_t timestamp_from_number(int64_t number)
{
    return number >= FIRST_AS_MS ? number / 1000 : number;
}

/* Read epoch seconds or milliseconds.  *ret_part: there is a part of a second more. */
static const char *read_number(struct slice text, int64_t *ret_s, bool *ret_part)
{
    int64_t number;
    if (text.n > NUMBER_DIGITS || !take_digits(&text, text.n, &number)) {
        return too_late;
    }
    *ret_s = timestamp_from_number(number);
    *ret_part = number >= FIRST_AS_MS && number % 1000 != 0;
    return range_fault(*ret_s);
}

static const char *read_midnight(struct slice text, const struct zone *zone, int64_t *ret_s)
{
    int64_t days;
    const char *fault = take_date(&text, &days);
    if (fault != NULL) {
        return fault;
    }
    *ret_s = zone_first_at(zone, days * DAY_S);
    return range_fault(*ret_s);
}

/* Take "-15m", and go there.  In a query '+' is a blank, so a blank is read as '+'. */
static const char *take_shift(struct slice *rest, const struct zone *zone, int64_t *at_s)
{
    bool back = slice_take(rest, '-');
    if (!back && !slice_take(rest, '+') && !slice_take(rest, ' ')) {
        return not_relative;
    }
    size_t n = count_digits(*rest);
    if (n == 0 || n == rest->n) {
        return not_relative;
    }
    int64_t amount;
    if (n > NUMBER_DIGITS || !take_digits(rest, n, &amount) || amount > CALENDAR_SHIFT_MAX) {
        return back ? too_early : too_late;
    }
    if (!calendar_shift(zone, rest->p[0], back ? -amount : amount, at_s)) {
        return not_relative;
    }
    skip(rest, 1);
    return range_fault(*at_s);
}

/* Go the steps behind "now".  *ret_rounded: a step has gone down to the beginning of a minute or a
 * longer unit. */
static const char *read_steps(
    struct slice rest, const struct zone *zone, int64_t *at_s, bool *ret_rounded)
{
    const char *fault = NULL;
    while (rest.n > 0 && fault == NULL) {
        if (!slice_take(&rest, '/')) {
            fault = take_shift(&rest, zone, at_s);
            continue;
        }
        if (rest.n == 0 || !calendar_floor(zone, rest.p[0], at_s)) {
            return not_relative;
        }
        *ret_rounded = *ret_rounded || rest.p[0] != 's';
        skip(&rest, 1);
        fault = range_fault(*at_s);
    }
    return fault;
}

/* Is @text digits, and maybe a fraction behind a dot?  *ret is what stands before the dot, and
 * *ret_fraction the digits behind it. */
static bool is_number(struct slice text, struct slice *ret, struct slice *ret_fraction)
{
    size_t n = count_digits(text);
    struct slice fraction = {text.p + n, text.n - n};
    *ret = (struct slice){text.p, n};
    bool is = n > 0 && (fraction.n == 0 || (slice_take(&fraction, '.') && fraction.n > 0 &&
                                               count_digits(fraction) == fraction.n));
    *ret_fraction = fraction;
    return is;
}

bool timestamp_parameter(struct slice text, const struct zone *zone, int64_t now_ms,
    enum timestamp_round round, int64_t *ret_s, bool *ret_is_now, const char **ret_detail)
{
    int64_t at_s = now_ms / 1000;
    bool border = true; /* a time at second 0 is a border: rounded up it stays what it is */
    bool part = false;
    const char *fault;
    struct slice number, fraction;
    if (slice_begins(text, SLICE("now"))) {
        /* "now" lies within its minute, even at second 0, and so does now-15m. */
        border = false;
        fault = read_steps((struct slice){text.p + 3, text.n - 3}, zone, &at_s, &border);
    } else if (is_number(text, &number, &fraction)) {
        fault = read_number(number, &at_s, &part);
        part = part || is_part(fraction);
    } else if (text.n == sizeof "2026-11-20" - 1) {
        fault = read_midnight(text, zone, &at_s);
    } else {
        fault = read_rfc3339(text, true, &at_s, &part);
    }
    border = border && !part;
    if (fault == NULL) {
        struct bucket minute = bucket_at(zone, LEVEL_MINUTE, at_s);
        if (round == TIMESTAMP_DOWN || (border && at_s == minute.start_s)) {
            at_s = minute.start_s;
        } else {
            at_s = minute.end_s;
        }
        fault = range_fault(at_s);
    }
    if (fault != NULL) {
        *ret_detail = fault;
        return false;
    }
    *ret_s = at_s;
    *ret_is_now = slice_equal(text, SLICE("now"));
    return true;
}

/* Write @n digits of @value and the byte @behind them.  Returns where the next byte goes. */
static char *put_digits(char *to, int64_t value, unsigned n, char behind)
{
    for (unsigned i = n; i > 0; i--) {
        to[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    to[n] = behind;
    return to + n + 1;
}

/* The digits are written without snprintf(), because an answer can have thousands of times. */
void timestamp_print(int64_t at_s, char text[TIMESTAMP_TEXT])
{
    int64_t days = bucket_day(zone_utc(), at_s);
    int64_t clock_s = at_s - days * DAY_S;
    struct civil_date date = civil_from_days(days);
    char *to = put_digits(text, date.year, 4, '-');
    to = put_digits(to, date.month, 2, '-');
    to = put_digits(to, date.day, 2, 'T');
    to = put_digits(to, clock_s / HOUR_S, 2, ':');
    to = put_digits(to, clock_s % HOUR_S / MINUTE_S, 2, ':');
    *put_digits(to, clock_s % MINUTE_S, 2, 'Z') = '\0';
}
