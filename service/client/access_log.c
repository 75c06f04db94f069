#include "service/client/access_log.h"

#include <arpa/inet.h>

#include "handlers/text/utf8.h"
#include "storage/time/zone.h"

/* A later year comes from a broken clock.  Its seconds would soon be taken for milliseconds, which
 * begin at 10^11 in an event. */
#define YEAR_MAX 2999

#define TIME_BYTES (sizeof("dd/Mon/yyyy:HH:MM:SS +hhmm") - 1)

/* The rest of the line.  A take_ function moves the cursor only when it returns true. */
struct cursor {
    const char *p, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_byte(struct cursor *cur, char c)
{
    if (cur->p == cur->end || *cur->p != c) {
        return false;
    }
    cur->p++;
    return true;
}

/* Take bytes up to a blank, at least one.  The blank is left. */
static bool take_word(struct cursor *cur, struct slice *ret)
{
    const char *p = cur->p;
    while (p < cur->end && *p != ' ') {
        p++;
    }
    if (p == cur->p) {
        return false;
    }
    *ret = (struct slice){cur->p, (size_t)(p - cur->p)};
    cur->p = p;
    return true;
}

/* Take a quoted text; *ret has no quotes. */
static bool take_quoted(struct cursor *cur, struct slice *ret)
{
    const char *p = cur->p;
    if (p == cur->end || *p != '"') {
        return false;
    }
    for (p++; p < cur->end && *p != '"'; p++) {
        if (*p == '\\' && ++p == cur->end) {
            return false;
        }
    }
    if (p >= cur->end) {
        return false;
    }
    *ret = (struct slice){cur->p + 1, (size_t)(p - cur->p - 1)};
    cur->p = p + 1;
    return true;
}

/* Exactly @n digits, or -1. */
static int digits(const char *p, unsigned n)
{
    int value = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!is_digit(p[i])) {
            return -1;
        }
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

/* 1..12, or 0. */
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

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* The offset "+hhmm" in seconds. */
static bool parse_offset(const char *p, int *ret_s)
{
    int hours = digits(p + 1, 2), minutes = digits(p + 3, 2);
    if ((p[0] != '+' && p[0] != '-') || hours < 0 || hours > 23 || minutes < 0 || minutes > 59) {
        return false;
    }
    *ret_s = (hours * 3600 + minutes * 60) * (p[0] == '-' ? -1 : 1);
    return true;
}

/* @p holds TIME_BYTES bytes. */
static bool parse_time(const char *p, int64_t *ret_s)
{
    int day = digits(p, 2), month = month_number(p + 3), year = digits(p + 7, 4);
    int hour = digits(p + 12, 2), minute = digits(p + 15, 2), second = digits(p + 18, 2);
    if (p[2] != '/' || p[6] != '/' || p[11] != ':' || p[14] != ':' || p[17] != ':' ||
        p[20] != ' ') {
        return false;
    }
    if (year < 1970 || year > YEAR_MAX || month == 0 || day < 1 ||
        day > days_in_month(year, month)) {
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
    int64_t at_s = civil_to_days((struct civil_date){year, month, day}) * 86400 + hour * 3600 +
                   minute * 60 + second - offset_s;
    if (at_s < 0) {
        return false;
    }
    *ret_s = at_s;
    return true;
}

/* Take the next "[TIME] " behind a blank, and what stands before. */
static bool take_time(struct cursor *cur, int64_t *ret_s)
{
    for (const char *p = cur->p + 1; p < cur->end; p++) {
        p = memchr(p, '[', (size_t)(cur->end - p));
        if (p == NULL || (size_t)(cur->end - p) < TIME_BYTES + 3) {
            return false;
        }
        if (p[-1] == ' ' && p[TIME_BYTES + 1] == ']' && p[TIME_BYTES + 2] == ' ' &&
            parse_time(p + 1, ret_s)) {
            cur->p = p + TIME_BYTES + 3;
            return true;
        }
    }
    return false;
}

/* Take a number, or "-" for none. */
static bool take_number(struct cursor *cur)
{
    struct slice word;
    struct cursor at = *cur;
    if (!take_word(&at, &word)) {
        return false;
    }
    if (!slice_equal(word, SLICE("-"))) {
        for (size_t i = 0; i < word.n; i++) {
            if (!is_digit(word.p[i])) {
                return false;
            }
        }
    }
    *cur = at;
    return true;
}

/* May @text be a method?  RFC 9110 section 5.6.2. */
static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c == '\0' || (!letter && !is_digit(c) && strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return text.n > 0;
}

static enum access_log_method method_of(struct slice name)
{
    if (slice_equal(name, SLICE("GET"))) {
        return ACCESS_LOG_GET;
    }
    if (slice_equal(name, SLICE("HEAD"))) {
        return ACCESS_LOG_HEAD;
    }
    if (slice_equal(name, SLICE("POST"))) {
        return ACCESS_LOG_POST;
    }
    return ACCESS_LOG_OTHER;
}

/* Is @text "HTTP/1.1", "HTTP/2"..? */
static bool is_protocol(struct slice text)
{
    if (text.n < sizeof("HTTP/1") - 1 || memcmp(text.p, "HTTP/", 5) != 0) {
        return false;
    }
    for (size_t i = 5; i < text.n; i++) {
        if (!is_digit(text.p[i]) && text.p[i] != '.') {
            return false;
        }
    }
    return true;
}

/* METHOD TARGET [HTTP/x].  Servers log what came, so a target may hold blanks.  The target ends at
 * the protocol, not at the first blank. */
static bool parse_request(struct slice request, struct access_log_line *line)
{
    struct cursor cur = {request.p, request.p + request.n};
    struct slice method;
    if (!take_word(&cur, &method) || !is_token(method) || cur.p == cur.end) {
        return false;
    }
    const char *end = cur.end;
    const char *last = memrchr(cur.p, ' ', (size_t)(end - cur.p));
    if (last != NULL && is_protocol((struct slice){last + 1, (size_t)(end - last - 1)})) {
        end = last;
    }
    while (cur.p < end && *cur.p == ' ') {
        cur.p++;
    }
    if (cur.p >= end) {
        return false;
    }
    const char *query = memchr(cur.p, '?', (size_t)(end - cur.p));
    line->method = method_of(method);
    line->page = (struct slice){cur.p, (size_t)((query != NULL ? query : end) - cur.p)};
    return line->page.n > 0;
}

static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f) {
            return true;
        }
    }
    return false;
}

static bool is_ip(struct slice host)
{
    char text[INET6_ADDRSTRLEN];
    if (host.n >= sizeof(text) || memchr(host.p, '\0', host.n) != NULL) {
        return false;
    }
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    unsigned char address[16];
    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* "REQUEST" STATUS BYTES ["REFERRER" "USER AGENT"].  NULL, or what is wrong.  *ret_clean: the last
 * field ends at a blank or at the line's end. */
static const char *split_rest(
    struct cursor cur, enum access_log_format format, struct access_log_line *line, bool *ret_clean)
{
    struct slice request;
    if (!take_quoted(&cur, &request) || !take_byte(&cur, ' ')) {
        return "no quoted request";
    }
    if (!parse_request(request, line)) {
        return "no valid request";
    }
    if (!take_number(&cur) || !take_byte(&cur, ' ') || !take_number(&cur)) {
        return "no status and size";
    }
    if (format == ACCESS_LOG_COMMON) {
        while (take_byte(&cur, ' ')) {
            continue;
        }
        *ret_clean = true;
        return cur.p == cur.end ? NULL : "more fields than the common format has";
    }
    struct slice referrer;
    if (!take_byte(&cur, ' ') || !take_quoted(&cur, &referrer)) {
        return "no quoted referrer";
    }
    if (!take_byte(&cur, ' ') || !take_quoted(&cur, &line->ua)) {
        return "no quoted user agent";
    }
    *ret_clean = cur.p == cur.end || *cur.p == ' ';
    return NULL;
}

/* Cut the line into its fields.  NULL, or what is wrong.
 *
 * A user's name may hold blanks and brackets.  So the time is the first bracket behind which the
 * rest of the line reads as it should.  Sometimes two records ran into each other.  Then the first
 * is cut off, and its user agent does not end cleanly.  The second is taken if it is whole, else
 * the first. */
static const char *split(
    struct slice text, enum access_log_format format, struct access_log_line *line)
{
    struct cursor cur = {text.p, text.p + text.n};
    if (!take_word(&cur, &line->host)) {
        return text.n == 0 ? "empty line" : "no host";
    }
    struct slice ident, user;
    if (!take_byte(&cur, ' ') || !take_word(&cur, &ident) || !take_byte(&cur, ' ') ||
        !take_word(&cur, &user)) {
        return "no valid time";
    }
    struct access_log_line unclean = {0};
    const char *detail = NULL;
    while (take_time(&cur, &line->at_s)) {
        bool clean = false;
        const char *fault = split_rest(cur, format, line, &clean);
        if (fault == NULL && clean) {
            return NULL;
        }
        if (fault == NULL && unclean.host.n == 0) {
            unclean = *line;
        }
        detail = detail == NULL ? fault : detail;
    }
    if (unclean.host.n > 0) {
        *line = unclean;
        return NULL;
    }
    return detail == NULL ? "no valid time" : detail;
}

/* NULL, or why the server would not take the line. */
static const char *check(const struct access_log_line *line)
{
    if (!utf8_valid(line->page) || !utf8_valid(line->ua) || !utf8_valid(line->host)) {
        return "not UTF-8";
    }
    if (has_control(line->page)) {
        return "control character in the target";
    }
    if (line->ua.n > 0 && memchr(line->ua.p, '\0', line->ua.n) != NULL) {
        return "NUL in the user agent";
    }
    return NULL;
}

enum access_log_result access_log_parse(struct slice text, enum access_log_format format,
    struct access_log_line *ret, const char **ret_detail)
{
    struct access_log_line line = {0};
    const char *detail = split(text, format, &line);
    if (detail == NULL) {
        detail = check(&line);
    }
    if (detail != NULL) {
        *ret_detail = detail;
        return ACCESS_LOG_MALFORMED;
    }
    line.host_is_ip = is_ip(line.host);
    *ret = line;
    return line.method == ACCESS_LOG_OTHER ? ACCESS_LOG_OTHER_METHOD : ACCESS_LOG_EVENT;
}
