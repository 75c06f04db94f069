#include "handlers/text/timestamp.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#define NOW_MS    INT64_C(1795188659123) /* 2026-11-20T15:30:59.123Z, a Friday */
#define MINUTE_MS INT64_C(1795188600000) /* 2026-11-20T15:30:00.000Z */
#define UNTOUCHED INT64_C(-77)

static bool parameter(
    const char *text, int64_t now_ms, enum timestamp_round round, int64_t *ret_s, bool *ret_is_now)
{
    const char *detail = NULL;
    bool ok =
        timestamp_parameter(slice_of(text), zone_utc(), now_ms, round, ret_s, ret_is_now, &detail);

    cr_expect_eq(ok, detail == NULL, "\"%s\": a detail says why, and only then", text);
    return ok;
}

/* @text, as `from` (down) and as `to` (up) at @now_ms, is what @from and @to say. */
static void check_at(const char *text, int64_t now_ms, const char *from, const char *to)
{
    static const enum timestamp_round rounds[] = {TIMESTAMP_DOWN, TIMESTAMP_UP};

    for (int i = 0; i < 2; i++) {
        int64_t at_s = UNTOUCHED;
        bool is_now = false;
        char printed[32];

        cr_assert(parameter(text, now_ms, rounds[i], &at_s, &is_now), "\"%s\"", text);
        timestamp_print(at_s, printed);
        cr_expect_str_eq(
            printed, i == 0 ? from : to, "\"%s\": %s, not %s", text, printed, i == 0 ? from : to);
        cr_expect_eq(is_now, strcmp(text, "now") == 0, "\"%s\"", text);
    }
}

static void check(const char *text, const char *from, const char *to)
{
    check_at(text, NOW_MS, from, to);
}

/* At a border of minutes: the same as from and to. */
static void check_exact(const char *text, const char *expected)
{
    check(text, expected, expected);
}

/* Reads from a block of just the text's size, so that the sanitizer sees a look behind its end. */
static const char *detail_of(struct slice text, enum timestamp_round round)
{
    int64_t at_s = UNTOUCHED;
    bool is_now = true;
    const char *detail = NULL;
    char *bytes = malloc(text.n + (text.n == 0));

    cr_assert_not_null(bytes);
    if (text.n > 0) {
        memcpy(bytes, text.p, text.n);
    }
    cr_expect_not(timestamp_parameter((struct slice){bytes, text.n}, zone_utc(), NOW_MS, round,
                      &at_s, &is_now, &detail),
        "\"%.*s\"", (int)text.n, text.p);
    cr_expect(at_s == UNTOUCHED && is_now, "\"%.*s\"", (int)text.n, text.p);
    free(bytes);
    return detail ? detail : "(accepted)";
}

/* Refused, and the detail contains @word. */
static void check_refused(const char *text, const char *word)
{
    const char *down = detail_of(slice_of(text), TIMESTAMP_DOWN);
    const char *up = detail_of(slice_of(text), TIMESTAMP_UP);

    cr_expect_not_null(strstr(down, word), "\"%s\": %s", text, down);
    cr_expect_str_eq(down, up);
}

static void check_rfc3339(const char *text, int64_t expected_s)
{
    int64_t at_s = UNTOUCHED;

    cr_expect(timestamp_rfc3339(slice_of(text), &at_s), "\"%s\"", text);
    cr_expect_eq(at_s, expected_s, "\"%s\": %" PRId64, text, at_s);
}

Test(timestamp, rfc3339)
{
    check_rfc3339("2026-11-20T15:30:59Z", 1795188659);
    check_rfc3339("2026-11-20t15:30:59z", 1795188659);
    check_rfc3339("2026-11-20T16:30:59+01:00", 1795188659);
    check_rfc3339("2026-11-20T10:00:59-05:30", 1795188659);
    check_rfc3339("2026-11-20T15:30:59-00:00", 1795188659);
    check_rfc3339("2026-11-20T15:30:59.999999999999999999999999Z", 1795188659);
    check_rfc3339("2026-11-20T15:30:59.9+00:00", 1795188659);
    check_rfc3339("2016-12-31T23:59:60Z", 1483228799);
    check_rfc3339("2016-12-31T23:59:60.5Z", 1483228799);
    check_rfc3339("2024-02-29T00:00:00Z", 1709164800);
    check_rfc3339("2000-02-29T00:00:00Z", 951782400);
    check_rfc3339("1970-01-01T00:00:00Z", 0);
    check_rfc3339("1969-12-31T23:00:00-01:00", 0);
    check_rfc3339("9999-12-31T23:59:59Z", INT64_C(253402300799));
    check_rfc3339("2026-11-21T15:29:59+23:59", 1795188659);
}

Test(timestamp, rfc3339_refuses)
{
    static const char *const texts[] = {
        "",
        "now",
        "1795188659",
        "2026-11-20",
        "2026-11-20T15:30:59",
        "2026-11-20 15:30:59Z",
        "2026-11-20T15:30:59 01:00",
        "2026-11-20T15:30:59+0100",
        "2026-11-20T15:30:59+01",
        "2026-11-20T15:30:59+01:0",
        "2026-11-20T15:30:59+01:000",
        "2026-11-20T15:30:59+24:00",
        "2026-11-20T15:30:59+01:60",
        "2026-11-20T15:30:59ZZ",
        "2026-11-20T15:30:59Z ",
        " 2026-11-20T15:30:59Z",
        "2026-11-20T15:30:59.Z",
        "2026-11-20T15:30:59,5Z",
        "2026-11-20T15:30Z",
        "2026-11-20T15:30:61Z",
        "2026-11-20T15:60:00Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20T-1:00:00Z",
        "2026-11-20T+1:00:00Z",
        "2026-11-20T 1:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-1-1T00:00:00Z",
        "20261120T153059Z",
        "12026-11-20T15:30:59Z",
        "-026-11-20T15:30:59Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:59:59+01:00",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-00:01",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t at_s = UNTOUCHED;

        cr_expect_not(timestamp_rfc3339(slice_of(texts[i]), &at_s), "\"%s\"", texts[i]);
        cr_expect_eq(at_s, UNTOUCHED, "\"%s\"", texts[i]);
    }
    cr_expect_not(timestamp_rfc3339((struct slice){NULL, 0}, &(int64_t){0}));
    cr_expect_not(timestamp_rfc3339(SLICE("2026-11-20T15:30:59\0Z"), &(int64_t){0}));
}

/* Every proper beginning of a time is none; and the slice's end is where reading ends. */
Test(timestamp, rfc3339_cut_off)
{
    struct slice text = SLICE("2026-11-20T15:30:59.5+01:00");

    for (size_t n = 0; n < text.n; n++) {
        cr_expect_not(timestamp_rfc3339((struct slice){text.p, n}, &(int64_t){0}), "%zu", n);
    }
}

Test(timestamp, numbers)
{
    cr_expect_eq(timestamp_from_number(0), 0);
    cr_expect_eq(timestamp_from_number(-5), -5);
    cr_expect_eq(timestamp_from_number(INT64_C(99999999999)), INT64_C(99999999999));
    cr_expect_eq(timestamp_from_number(INT64_C(100000000000)), 100000000);
    cr_expect_eq(timestamp_from_number(INT64_C(1795188659999)), 1795188659);
    cr_expect_eq(timestamp_from_number(INT64_MIN), INT64_MIN);
    cr_expect_eq(timestamp_from_number(INT64_MAX), INT64_MAX / 1000);
}

Test(timestamp, parameter_absolute)
{
    check("2026-11-20T15:30:59Z", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("2026-11-20T15:30:00.9Z", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("2026-11-20T15:30:00.001Z", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("2026-11-20T15:30:59.5Z", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check_exact("2026-11-20T15:30:00.000Z", "2026-11-20T15:30:00Z");
    check_exact("2026-11-20T15:30:00Z", "2026-11-20T15:30:00Z");
    check_exact("2026-11-20T15:30:00 01:00", "2026-11-20T14:30:00Z");
    check_exact("2026-11-20T15:30:00+01:00", "2026-11-20T14:30:00Z");
    check_exact("2026-11-20", "2026-11-20T00:00:00Z");
    check_exact("2024-02-29", "2024-02-29T00:00:00Z");
    check_exact("1970-01-01", "1970-01-01T00:00:00Z");
    check("1795188659", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("1795188659123", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("1795188659.999", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("1795188600.5", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("1795188600000.5", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check_exact("1795188600.00", "2026-11-20T15:30:00Z");
    check_exact("1795188600", "2026-11-20T15:30:00Z");
    check_exact("1795188600000", "2026-11-20T15:30:00Z");
    check("1795188600001", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check_exact("0", "1970-01-01T00:00:00Z");
    check_exact("000000001795188600", "2026-11-20T15:30:00Z");
    check("1", "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z");
    check("20261120", "1970-08-23T12:05:00Z", "1970-08-23T12:06:00Z"); /* seconds, as any number */
}

Test(timestamp, parameter_now)
{
    check("now", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    /* also at second 0 now is within its minute, and so is what is counted from it */
    check_at("now", MINUTE_MS, "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check_at("now-15m", MINUTE_MS, "2026-11-20T15:15:00Z", "2026-11-20T15:16:00Z");
    check_at("now/d", MINUTE_MS, "2026-11-20T00:00:00Z", "2026-11-20T00:00:00Z");
    check_at("now/m", MINUTE_MS, "2026-11-20T15:30:00Z", "2026-11-20T15:30:00Z");
    check_at("now/s", MINUTE_MS, "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
}

Test(timestamp, parameter_steps)
{
    check("now-30s", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("now-60s", "2026-11-20T15:29:00Z", "2026-11-20T15:30:00Z");
    check("now-15m", "2026-11-20T15:15:00Z", "2026-11-20T15:16:00Z");
    check("now-24h", "2026-11-19T15:30:00Z", "2026-11-19T15:31:00Z");
    check("now-7d", "2026-11-13T15:30:00Z", "2026-11-13T15:31:00Z");
    check("now+1d", "2026-11-21T15:30:00Z", "2026-11-21T15:31:00Z");
    check("now 1d", "2026-11-21T15:30:00Z", "2026-11-21T15:31:00Z"); /* a query's '+' */
    check("now-2w", "2026-11-06T15:30:00Z", "2026-11-06T15:31:00Z");
    check("now-1M", "2026-10-20T15:30:00Z", "2026-10-20T15:31:00Z");
    check("now-11M", "2025-12-20T15:30:00Z", "2025-12-20T15:31:00Z");
    check("now+2M", "2027-01-20T15:30:00Z", "2027-01-20T15:31:00Z");
    check("now-1y", "2025-11-20T15:30:00Z", "2025-11-20T15:31:00Z");
    check("now-0d", "2026-11-20T15:30:00Z", "2026-11-20T15:31:00Z");
    check("now-0007d", "2026-11-13T15:30:00Z", "2026-11-13T15:31:00Z");
}

Test(timestamp, parameter_roundings)
{
    check_exact("now/m", "2026-11-20T15:30:00Z");
    check_exact("now/h", "2026-11-20T15:00:00Z");
    check_exact("now/d", "2026-11-20T00:00:00Z");
    check_exact("now/w", "2026-11-16T00:00:00Z");
    check_exact("now/M", "2026-11-01T00:00:00Z");
    check_exact("now/y", "2026-01-01T00:00:00Z");
    check_exact("now-1M/M", "2026-10-01T00:00:00Z");
    check_exact("now-1d/d", "2026-11-19T00:00:00Z");
    check_exact("now/d-1d", "2026-11-19T00:00:00Z");
    check_exact("now/d-1d+6h", "2026-11-19T06:00:00Z");
    check_exact("now/w-1w", "2026-11-09T00:00:00Z");
    check_exact("now/M/y", "2026-01-01T00:00:00Z");
    check("now/d+15s", "2026-11-20T00:00:00Z", "2026-11-20T00:01:00Z");
    /* every weekday of a week that crosses two months */
    for (int day = 0; day < 7; day++) {
        check_at("now/w", (1795996800 + day * INT64_C(86400)) * 1000, "2026-11-30T00:00:00Z",
            "2026-11-30T00:00:00Z");
    }
    check_at("now/w", 1795996799 * INT64_C(1000), "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z");
}

Test(timestamp, parameter_clips_the_day)
{
    int64_t march_31_ms = INT64_C(1774951200000); /* 2026-03-31T10:00Z */
    int64_t leap_day_ms = INT64_C(1709164800000); /* 2024-02-29T00:00Z */

    check_at("now-1M", march_31_ms, "2026-02-28T10:00:00Z", "2026-02-28T10:01:00Z");
    check_at("now-1M-1M", march_31_ms, "2026-01-28T10:00:00Z", "2026-01-28T10:01:00Z");
    check_at("now-2M", march_31_ms, "2026-01-31T10:00:00Z", "2026-01-31T10:01:00Z");
    check_at("now-25M", march_31_ms, "2024-02-29T10:00:00Z", "2024-02-29T10:01:00Z");
    check_at("now+1M", march_31_ms, "2026-04-30T10:00:00Z", "2026-04-30T10:01:00Z");
    check_at("now-1y", leap_day_ms, "2023-02-28T00:00:00Z", "2023-02-28T00:01:00Z");
    check_at("now+4y", leap_day_ms, "2028-02-29T00:00:00Z", "2028-02-29T00:01:00Z");
}

Test(timestamp, parameter_refuses)
{
    static const char *const relative[] = {"now-", "now+", "now/", "now-5", "now-m", "now/x",
        "now-5x", "now5m", "now 5", "now  5m", "now- 5m", "now-5m ", "now--5m", "now-+5m",
        "now-5mm", "now/dd", "now/1d", "now-5D", "now/H", "now-1.5h", "now-1d/", "now-1d/q",
        "nowadays", "nownow", "now-5ms"};
    static const char *const others[] = {"", " ", "no", "NOW", "Now", "-5", "+5", "1e9", "0x10",
        "1795188659.", ".5", "1795188659.5.5", "1795188659,5", "1795188659 ", "yesterday",
        "2026-11", "2026/11/20", "20-11-2026", "2026-11-2x", "2026-11-20T", "2026-11-20T15:30Z",
        "2026-11-20 15:30:00Z", "2026-11-20T15:30:00  01:00", "2026-11-20T15:30:00+01:00x",
        "\xff\xfe"};

    for (size_t i = 0; i < sizeof relative / sizeof relative[0]; i++) {
        check_refused(relative[i], "behind now stand steps");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        check_refused(others[i], "not a time: give");
    }
    check_refused("2026-02-30", "no such date");
    check_refused("2026-13-01", "no such date");
    check_refused("2026-02-30T00:00:00Z", "no such date");
    check_refused("2026-11-20T25:00:00Z", "no such time of day");
    check_refused("2026-11-20T15:30:00+99:00", "no such offset");
    check_refused("2026-11-20T15:30:00", "append Z");
    detail_of((struct slice){NULL, 0}, TIMESTAMP_DOWN);
    detail_of(SLICE("now\0"), TIMESTAMP_DOWN);
    detail_of((struct slice){"now-5m", 5}, TIMESTAMP_DOWN); /* it goes on behind the slice */
    detail_of((struct slice){"now/d", 4}, TIMESTAMP_DOWN);
    detail_of(SLICE("17951886\0"), TIMESTAMP_DOWN);
}

Test(timestamp, parameter_refuses_what_is_out_of_range)
{
    check_refused("1969-12-31", "before 1970");
    check_refused("0000-01-01", "before 1970");
    check_refused("1969-12-31T23:59:59Z", "before 1970");
    check_refused("now-57y", "before 1970");
    check_refused("now-57y+57y", "before 1970");
    check_refused("now-99999999999d", "before 1970");
    check_refused("now-253402300799y", "before 1970");
    check_refused("now-253402300799M", "before 1970");
    check_refused("now-2534023007990y", "before 1970");
    check_refused("now-253402300800s", "before 1970");
    check_refused("now-999999999999999999y", "before 1970");
    check_refused("now-9223372036854775808s", "before 1970");
    check_refused("now-99999999999999999999999999s", "before 1970");
    check_refused("now+8000y", "after the year 9999");
    check_refused("now+253402300799y", "after the year 9999");
    check_refused("now+2534023007990y", "after the year 9999");
    check_refused("now+253402300799w", "after the year 9999");
    check_refused("now+99999999999999999999999999s", "after the year 9999");
    check_refused("999999999999999999", "after the year 9999");
    check_refused("253402300800000", "after the year 9999");
    check_refused("1000000000000000000", "after the year 9999");
    check_refused("9999999999999999999", "after the year 9999");
    check_refused("00000000000000000000000000", "after the year 9999");
}

Test(timestamp, parameter_in_the_last_minute)
{
    int64_t at_s = UNTOUCHED;
    bool is_now;

    cr_expect(parameter("253402300799999", NOW_MS, TIMESTAMP_DOWN, &at_s, &is_now));
    cr_expect_eq(at_s, INT64_C(253402300740));
    cr_expect_str_eq(detail_of(SLICE("9999-12-31T23:59:59Z"), TIMESTAMP_UP), "after the year 9999");
}

Test(timestamp, prints)
{
    char text[32];

    timestamp_print(0, text);
    cr_expect_str_eq(text, "1970-01-01T00:00:00Z");
    timestamp_print(1795188659, text);
    cr_expect_str_eq(text, "2026-11-20T15:30:59Z");
    timestamp_print(1709251199, text);
    cr_expect_str_eq(text, "2024-02-29T23:59:59Z");
    timestamp_print(-1, text);
    cr_expect_str_eq(text, "1969-12-31T23:59:59Z");
    timestamp_print(INT64_C(253402300799), text);
    cr_expect_str_eq(text, "9999-12-31T23:59:59Z");
    timestamp_print(INT64_C(-62167219200), text);
    cr_expect_str_eq(text, "0000-01-01T00:00:00Z");
}

Test(timestamp, what_is_printed_can_be_read)
{
    for (int64_t at_s = 0; at_s <= INT64_C(253402300799); at_s += 98765431) {
        int64_t back_s = UNTOUCHED;
        char text[32];

        timestamp_print(at_s, text);
        if (!timestamp_rfc3339(slice_of(text), &back_s) || back_s != at_s) {
            cr_assert_fail("%s", text);
        }
    }
}

/* ---- in a zone ---- */

/* Berlin's summer of 2026, and New York's summer and what comes before. */
static struct zone *zone_of(int64_t first_s, const char *begins, const char *ends)
{
    struct zone_change changes[2] = {{0, first_s + 3600}, {0, first_s}};
    const char *fault = NULL;

    cr_assert(timestamp_rfc3339(slice_of(begins), &changes[0].at_s));
    cr_assert(timestamp_rfc3339(slice_of(ends), &changes[1].at_s));
    struct zone *zone = zone_make("Test/Zone", first_s, changes, 2, false, 0, &fault);
    cr_assert_not_null(zone);
    return zone;
}

static void check_in(
    const struct zone *zone, const char *text, const char *now, const char *expected)
{
    int64_t at_s = UNTOUCHED;
    int64_t now_s = 0;
    bool is_now = false;
    const char *detail = NULL;
    char printed[32];

    cr_assert(timestamp_rfc3339(slice_of(now), &now_s));
    cr_assert(timestamp_parameter(
                  slice_of(text), zone, now_s * 1000, TIMESTAMP_DOWN, &at_s, &is_now, &detail),
        "%s: %s", text, detail);
    timestamp_print(at_s, printed);
    cr_expect_str_eq(printed, expected, "%s at %s: %s, not %s", text, now, printed, expected);
}

Test(timestamp, in_a_zone)
{
    struct zone *zone = zone_of(3600, "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z");
    const char *now = "2026-10-26T13:37:10Z"; /* a Monday, 14:37 there */

    check_in(zone, "now/d", now, "2026-10-25T23:00:00Z");
    check_in(zone, "now/d-1d", now, "2026-10-24T22:00:00Z");
    check_in(zone, "now-1d/d", now, "2026-10-24T22:00:00Z");
    check_in(zone, "now-1d", now, "2026-10-25T13:37:00Z");
    check_in(zone, "now-2d", now, "2026-10-24T12:37:00Z"); /* 14:37 there, 49 hours ago */
    check_in(zone, "now/w", now, "2026-10-25T23:00:00Z");
    check_in(zone, "now-1w/w", now, "2026-10-18T22:00:00Z");
    check_in(zone, "now/M", now, "2026-09-30T22:00:00Z");
    check_in(zone, "now-1M/M", now, "2026-08-31T22:00:00Z");
    check_in(zone, "now/y", now, "2025-12-31T23:00:00Z");
    check_in(zone, "now/h", "2026-10-25T01:37:10Z", "2026-10-25T01:00:00Z");
    check_in(zone, "2026-07-01", now, "2026-06-30T22:00:00Z");
    check_in(zone, "2026-03-29", now, "2026-03-28T23:00:00Z");
    check_in(zone, "now-7M", "2026-10-29T01:30:10Z", "2026-03-29T01:30:00Z"); /* 2:30 is missing */
    check_in(zone, "now+1d", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"); /* 2:30, the first */
    zone_free(zone);
}

Test(timestamp, midnights_that_are_missing_or_doubled)
{
    struct zone *zone = zone_of(-5 * 3600, "2026-03-08T05:00:00Z", "2026-11-01T05:00:00Z");

    check_in(zone, "2026-03-08", "2026-11-01T12:00:00Z", "2026-03-08T05:00:00Z");
    check_in(zone, "2026-11-01", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z");
    check_in(zone, "now/d", "2026-11-01T05:30:00Z", "2026-11-01T04:00:00Z");
    check_in(zone, "now/M", "2026-11-20T05:30:00Z", "2026-11-01T04:00:00Z");
    zone_free(zone);
}
