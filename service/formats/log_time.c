#include "service/formats/log_time.h"

#include <string.h>

#include "handlers/text/ascii.h"
#include "handlers/text/timestamp.h"

/* The first second of the year 3000. */
#define END_S INT64_C(32503680000)

/* The most digits of a number: nanoseconds in the year 2999 have 20. */
#define NUMBER_DIGITS 20

static bool are_digits(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!ascii_is_digit(p[i])) {
            return false;
        }
    }
    return true;
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

static bool is_in_range(int64_t at_s)
{
    return at_s >= 0 && at_s < END_S;
}

/* Read RFC 3339, also with the offset as "+hhmm". */
static bool read_rfc3339(struct slice text, int64_t *ret_s)
{
    int64_t at_s;
    char with_colon[40];
    if (text.n > 5 && text.n < sizeof(with_colon) && are_digits(text.p + text.n - 4, 4) &&
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

bool log_time_apache(const char *p, int64_t *ret_s)
{
    char text[] = "yyyy-mm-ddThh:mm:ss+hh:mm";
    int month = month_number(p + 3);
    if (p[2] != '/' || p[6] != '/' || p[11] != ':' || p[20] != ' ' || month == 0 ||
        memcmp(p + 7, "1970", 4) < 0) { /* also where the offset leads into 1970 */
        return false;
    }
    memcpy(text, p + 7, 4);
    text[5] = (char)('0' + month / 10);
    text[6] = (char)('0' + month % 10);
    memcpy(text + 8, p, 2);
    memcpy(text + 11, p + 12, 8);
    memcpy(text + 19, p + 21, 3);
    memcpy(text + 23, p + 24, 2);
    return read_rfc3339((struct slice){text, sizeof(text) - 1}, ret_s);
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
    bool has_fraction =
        n + 1 < text.n && text.p[n] == '.' && are_digits(text.p + n + 1, text.n - n - 1);
    if (n == 0 || n > NUMBER_DIGITS || (n < text.n && !has_fraction)) {
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
