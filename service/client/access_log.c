#include "service/client/access_log.h"

#include <arpa/inet.h>

/* Past this year a time is a broken clock, and its seconds would soon read as milliseconds (from
 * 10^11 on) where they are sent. */
#define YEAR_MAX 2999

#define TIME_BYTES (sizeof("dd/Mon/yyyy:HH:MM:SS +hhmm") - 1)

/* What is left of the line.  A take_ function moves on only when it returns true. */
struct cursor {
    const char *p, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_byte(struct cursor *cur, char c)
{
    if (cur->p == cur->end || *cur->p != c)
        return false;
    cur->p++;
    return true;
}

/* Bytes up to a blank, at least one; the blank is left. */
static bool take_word(struct cursor *cur, struct slice *ret)
{
    const char *p = cur->p;

    while (p < cur->end && *p != ' ')
        p++;
    if (p == cur->p)
        return false;
    *ret = (struct slice){cur->p, (size_t)(p - cur->p)};
    cur->p = p;
    return true;
}

/* "...", the text without its quotes. */
static bool take_quoted(struct cursor *cur, struct slice *ret)
{
    const char *p = cur->p;

    if (p == cur->end || *p != '"')
        return false;
    for (p++; p < cur->end && *p != '"'; p++)
        if (*p == '\\' && ++p == cur->end)
            return false;
    if (p >= cur->end)
        return false;
    *ret = (struct slice){cur->p + 1, (size_t)(p - cur->p - 1)};
    cur->p = p + 1;
    return true;
}

/* Exactly @n digits, or -1. */
static int digits(const char *p, unsigned n)
{
    int value = 0;

    for (unsigned i = 0; i < n; i++) {
        if (!is_digit(p[i]))
            return -1;
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

/* 1..12, or 0. */
static int month_number(const char *name)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (int month = 0; month < 12; month++)
        if (memcmp(name, names + 3 * month, 3) == 0)
            return month + 1;
    return 0;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : days[month - 1];
}

/* Days from 1970-01-01; @year from 1970 on.  A year is taken to begin in March, so that the leap
 * day is its last; 153 days are the five months March to July. */
static int64_t days_since_epoch(int year, int month, int day)
{
    int y = month <= 2 ? year - 1 : year;
    int from_march = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;

    return (int64_t)y * 365 + y / 4 - y / 100 + y / 400 + from_march - 719468;
}

/* The offset "+hhmm" in seconds. */
static bool parse_offset(const char *p, int *ret_s)
{
    int hours = digits(p + 1, 2), minutes = digits(p + 3, 2);

    if ((p[0] != '+' && p[0] != '-') || hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *ret_s = (hours * 3600 + minutes * 60) * (p[0] == '-' ? -1 : 1);
    return true;
}

/* @p holds TIME_BYTES bytes. */
static bool parse_time(const char *p, int64_t *ret_s)
{
    int day = digits(p, 2), month = month_number(p + 3), year = digits(p + 7, 4);
    int hour = digits(p + 12, 2), minute = digits(p + 15, 2), second = digits(p + 18, 2);
    int offset_s;
    int64_t at_s;

    if (p[2] != '/' || p[6] != '/' || p[11] != ':' || p[14] != ':' || p[17] != ':' || p[20] != ' ')
        return false;
    if (year < 1970 || year > YEAR_MAX || month == 0 || day < 1 || day > days_in_month(year, month))
        return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    if (!parse_offset(p + 21, &offset_s))
        return false;
    if (second == 60)
        second = 59;
    at_s =
        days_since_epoch(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset_s;
    if (at_s < 0)
        return false;
    *ret_s = at_s;
    return true;
}

/* " IDENT USER [TIME] ": a user's name may hold blanks and even brackets, so the time is the first
 * bracket that reads as one. */
static bool take_time(struct cursor *cur, int64_t *ret_s)
{
    struct slice ident;
    struct cursor at = *cur;

    if (!take_byte(&at, ' ') || !take_word(&at, &ident) || !take_byte(&at, ' '))
        return false;
    for (const char *p = at.p + 1; p < at.end; p++) {
        p = memchr(p, '[', (size_t)(at.end - p));
        if (!p || (size_t)(at.end - p) < TIME_BYTES + 3)
            return false;
        if (p[-1] == ' ' && p - at.p >= 2 && p[TIME_BYTES + 1] == ']' && p[TIME_BYTES + 2] == ' ' &&
            parse_time(p + 1, ret_s)) {
            cur->p = p + TIME_BYTES + 3;
            return true;
        }
    }
    return false;
}

/* A number, or "-" for none. */
static bool take_number(struct cursor *cur)
{
    struct slice word;
    struct cursor at = *cur;

    if (!take_word(&at, &word))
        return false;
    if (!slice_equal(word, SLICE("-")))
        for (size_t i = 0; i < word.n; i++)
            if (!is_digit(word.p[i]))
                return false;
    *cur = at;
    return true;
}

/* RFC 9110 5.6.2: what a method may be made of. */
static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (c == '\0' || (!letter && !is_digit(c) && !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return text.n > 0;
}

static enum access_log_method method_of(struct slice name)
{
    if (slice_equal(name, SLICE("GET")))
        return ACCESS_LOG_GET;
    if (slice_equal(name, SLICE("HEAD")))
        return ACCESS_LOG_HEAD;
    if (slice_equal(name, SLICE("POST")))
        return ACCESS_LOG_POST;
    return ACCESS_LOG_OTHER;
}

/* Is @text "HTTP/1.1", "HTTP/2"..? */
static bool is_protocol(struct slice text)
{
    if (text.n < sizeof("HTTP/1") - 1 || memcmp(text.p, "HTTP/", 5) != 0)
        return false;
    for (size_t i = 5; i < text.n; i++)
        if (!is_digit(text.p[i]) && text.p[i] != '.')
            return false;
    return true;
}

/* METHOD TARGET [HTTP/x].  Servers log what came, so a target may hold blanks: it ends at the
 * protocol, not at the first of them. */
static bool parse_request(struct slice request, struct access_log_line *line)
{
    struct cursor cur = {request.p, request.p + request.n};
    struct slice method;
    const char *end = cur.end, *last, *query;

    if (!take_word(&cur, &method) || !is_token(method) || cur.p == cur.end)
        return false;
    last = memrchr(cur.p, ' ', (size_t)(end - cur.p));
    if (last && is_protocol((struct slice){last + 1, (size_t)(end - last - 1)}))
        end = last;
    while (cur.p < end && *cur.p == ' ')
        cur.p++;
    if (cur.p >= end)
        return false;
    query = memchr(cur.p, '?', (size_t)(end - cur.p));
    line->method = method_of(method);
    line->page = (struct slice){cur.p, (size_t)((query ? query : end) - cur.p)};
    return line->page.n > 0;
}

/* Length of the UTF-8 sequence at @p, 0 if it is none (RFC 3629: no overlong forms, no surrogates).
 */
static size_t utf8_sequence(const unsigned char *p, size_t n)
{
    size_t length = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (length == 0 || p[0] > 0xf4 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return length;
}

static bool is_utf8(struct slice text)
{
    const unsigned char *p = (const unsigned char *)text.p;

    for (size_t i = 0, length; i < text.n; i += length)
        if ((length = utf8_sequence(p + i, text.n - i)) == 0)
            return false;
    return true;
}

static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return true;
    return false;
}

static bool is_ip(struct slice host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char address[16];

    if (host.n >= sizeof(text) || memchr(host.p, '\0', host.n))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Cuts the line into its fields; NULL, or what is wrong. */
static const char *split(
    struct slice text, enum access_log_format format, struct access_log_line *line)
{
    struct cursor cur = {text.p, text.p + text.n};
    struct slice request, referrer;

    if (!take_word(&cur, &line->host))
        return text.n == 0 ? "empty line" : "no host";
    if (!take_time(&cur, &line->at_s))
        return "no valid time";
    if (!take_quoted(&cur, &request) || !take_byte(&cur, ' '))
        return "no quoted request";
    if (!parse_request(request, line))
        return "no valid request";
    if (!take_number(&cur) || !take_byte(&cur, ' ') || !take_number(&cur))
        return "no status and size";
    if (format == ACCESS_LOG_COMMON) {
        while (take_byte(&cur, ' '))
            continue;
        return cur.p == cur.end ? NULL : "more fields than the common format has";
    }
    if (!take_byte(&cur, ' ') || !take_quoted(&cur, &referrer))
        return "no quoted referrer";
    if (!take_byte(&cur, ' ') || !take_quoted(&cur, &line->ua))
        return "no quoted user agent";
    return NULL;
}

/* What the server would not take; NULL, or what is wrong. */
static const char *check(const struct access_log_line *line)
{
    if (!is_utf8(line->page) || !is_utf8(line->ua) || !is_utf8(line->host))
        return "not UTF-8";
    if (has_control(line->page))
        return "control character in the target";
    if (line->ua.n > 0 && memchr(line->ua.p, '\0', line->ua.n))
        return "NUL in the user agent";
    return NULL;
}

enum access_log_result access_log_parse(struct slice text, enum access_log_format format,
    struct access_log_line *ret, const char **ret_detail)
{
    struct access_log_line line = {0};
    const char *detail = split(text, format, &line);

    if (!detail)
        detail = check(&line);
    if (detail) {
        *ret_detail = detail;
        return ACCESS_LOG_MALFORMED;
    }
    line.host_is_ip = is_ip(line.host);
    *ret = line;
    return line.method == ACCESS_LOG_OTHER ? ACCESS_LOG_OTHER_METHOD : ACCESS_LOG_EVENT;
}
