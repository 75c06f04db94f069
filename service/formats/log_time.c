#include "service/formats/log_time.h"

#include <string.h>

#include "handlers/text/ascii.h"
#include "handlers/text/timestamp.h"
#include "storage/time/units.h"
#include "storage/time/zone.h"

/* The first second of the year 3000. */
#define END_S INT64_C(32503680000)

/* The most digits of a number: nanoseconds in the year 2999 have 20. */
#define NUMBER_DIGITS 20

/* The number that the @n digits at @p make; -1: not all of them are digits. */
static int digits(const char *p, unsigned n)
{
    int value = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!ascii_is_digit(p[i])) {
            return -1;
        }
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

/* The month that the three letters at @name mean, 1..12; 0: none. */
static int month_number(const char *name)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int month = 0; month < 12; month++) {
        if (memcmp(name, names + 3 * month, 3) == 0) {
            return month + 1;
        }
    }
    return 0;
}

/* Read the offset "+hhmm" into *ret_s, in seconds. */
static bool parse_offset(const char *p, int *ret_s)
{
    int hours = digits(p + 1, 2), minutes = digits(p + 3, 2);
    if ((p[0] != '+' && p[0] != '-') || hours < 0 || hours > 23 || minutes < 0 || minutes > 59) {
        return false;
    }
    *ret_s = (hours * 3600 + minutes * 60) * (p[0] == '-' ? -1 : 1);
    return true;
}

static bool is_in_range(int64_t at_s)
{
    return at_s >= 0 && at_s < END_S;
}

bool log_time_apache(const char *p, int64_t *ret_s)
{
    int day = digits(p, 2), month = month_number(p + 3), year = digits(p + 7, 4);
    int hour = digits(p + 12, 2), minute = digits(p + 15, 2), second = digits(p + 18, 2);
    if (p[2] != '/' || p[6] != '/' || p[11] != ':' || p[14] != ':' || p[17] != ':' ||
        p[20] != ' ') {
        return false;
    }
    if (year < 1970 || month == 0 || day < 1 || day > civil_month_days(year, month)) {
        return false;
    }
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
        return false;
    }
    int offset_s;
    if (!parse_offset(p + 21, &offset_s)) {
        return false;
    }
    if (second == 60) {
        second = 59;
    }
    int64_t at_s = civil_to_days((struct civil_date){year, month, day}) * DAY_S + hour * HOUR_S +
                   minute * 60 + second - offset_s;
    if (!is_in_range(at_s)) {
        return false;
    }
    *ret_s = at_s;
    return true;
}

/* Read RFC 3339, also with the offset as "+hhmm". */
static bool read_rfc3339(struct slice text, int64_t *ret_s)
{
    int64_t at_s;
    char with_colon[40];
    if (text.n > 5 && text.n < sizeof(with_colon) && digits(text.p + text.n - 4, 4) >= 0 &&
        (text.p[text.n - 5] == '+' || text.p[text.n - 5] == '-') &&
        memchr(text.p, ':', text.n) != NULL) {
        memcpy(with_colon, text.p, text.n - 2);
        with_colon[text.n - 2] = ':';
        memcpy(with_colon + text.n - 1, text.p + text.n - 2, 2);
        text = (struct slice){with_colon, text.n + 1};
    }
    if (!timestamp_rfc3339(text, &at_s) || !is_in_range(at_s)) {
        return false;
    }
    *ret_s = at_s;
    return true;
}

bool log_time_utc(struct slice date, struct slice clock, int64_t *ret_s)
{
    char text[64];
    if (date.n == 0 || clock.n == 0 || date.n + clock.n + 2 > sizeof(text)) {
        return false;
    }
    memcpy(text, date.p, date.n);
    text[date.n] = 'T';
    memcpy(text + date.n + 1, clock.p, clock.n);
    text[date.n + 1 + clock.n] = 'Z';
    return read_rfc3339((struct slice){text, date.n + clock.n + 2}, ret_s);
}

/* How many of a number's @n digits are fractions of a second. */
static size_t sub_second_digits(size_t n)
{
    return n >= 18 ? 9 : n >= 15 ? 6 : n >= 12 ? 3 : 0;
}

static bool read_number(struct slice text, int64_t *ret_s)
{
    size_t n = 0;
    while (n < text.n && ascii_is_digit(text.p[n])) {
        n++;
    }
    for (size_t i = n + 1; i < text.n; i++) {
        if (!ascii_is_digit(text.p[i])) {
            return false;
        }
    }
    if (n == 0 || n > NUMBER_DIGITS || (n < text.n && (text.p[n] != '.' || n + 1 == text.n))) {
        return false;
    }
    int64_t at_s = 0;
    for (size_t i = 0; i < n - sub_second_digits(n); i++) {
        at_s = at_s * 10 + (text.p[i] - '0');
    }
    if (!is_in_range(at_s)) {
        return false;
    }
    *ret_s = at_s;
    return true;
}

bool log_time_any(struct slice text, int64_t *ret_s)
{
    if (text.n == LOG_TIME_APACHE_BYTES && text.p[2] == '/') {
        return log_time_apache(text.p, ret_s);
    }
    return read_rfc3339(text, ret_s) || read_number(text, ret_s);
}
