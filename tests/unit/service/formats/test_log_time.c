/* Times in every form that a server writes; Apache's are held by test_apache.c. */
#include <criterion/criterion.h>

#include "service/formats/log_time.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* The seconds are from `date -u -d TIME +%s`. */
Test(log_time, any_form)
{
    static const struct {
        const char *text;
        int64_t at_s;
    } rows[] = {
        {"10/Oct/2000:13:55:36 -0700", 971211336},
        {"2000-10-10T20:55:36Z", 971211336},
        {"2000-10-10T13:55:36-07:00", 971211336},
        {"2000-10-10T20:55:36.999999999Z", 971211336},
        {"2000-10-10T13:55:36-0700", 971211336}, /* Caddy's iso8601 */
        {"2000-10-11T02:25:36.999+0530", 971211336},
        {"2000-10-10T20:55:36.123456789+0000", 971211336},
        {"0", 0},
        {"971211336", 971211336},
        {"971211336.997", 971211336},
        {"1646861401.5241024", 1646861401},
        {"1646861401524", 1646861401},       /* milliseconds */
        {"1646861401524102", 1646861401},    /* microseconds */
        {"1646861401524102400", 1646861401}, /* nanoseconds */
        {"1646861401524.25", 1646861401},
        {"999999999999", 999999999},
        {"999999999999999", 999999999},
        {"999999999999999999", 999999999},
        {"32503679999", 32503679999},
        {"32503679999999999999", 32503679999},
    };
    for (size_t i = 0; i < N(rows); i++) {
        int64_t at_s = -1;
        cr_expect(log_time_any(slice_of(rows[i].text), &at_s), "%s", rows[i].text);
        cr_expect_eq(at_s, rows[i].at_s, "%s: %lld", rows[i].text, (long long)at_s);
    }
}

Test(log_time, none)
{
    static const char *const rows[] = {"", "-", "yesterday", "2000-10-10", "2000-10-10 20:55:36",
        "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "3000-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z", "2023-02-29T00:00:00Z", "10/Oct/9999:13:55:36 -0700",
        "10/Oct/0000:13:55:36 -0700", "32503680000", "99999999999", "-1", "1.", ".5", "1.5.5",
        "1e9", "123456789012345678901", "1 ", "0x10", "2000-10-10T20:55:36+2400",
        "2000-10-10T20:55:36+0060", "2000-10-10T20:55:36+000", "2000-10-10T20:55:36 0100",
        "2000-10-10T20:55:36+01000", "2000-10-10+0100", "+0100", ":+0100", "20:55-0700"};
    for (size_t i = 0; i < N(rows); i++) {
        int64_t at_s = 42;
        cr_expect_not(log_time_any(slice_of(rows[i]), &at_s), "%s", rows[i]);
        cr_expect_eq(at_s, 42);
    }
}

Test(log_time, date_and_clock)
{
    int64_t at_s = 0;
    cr_assert(log_time_utc(SLICE("2000-10-10"), SLICE("20:55:36"), &at_s));
    cr_expect_eq(at_s, 971211336);
    cr_expect_not(log_time_utc(SLICE("2000-10-10"), SLICE(""), &at_s));
    cr_expect_not(log_time_utc(SLICE(""), SLICE("20:55:36"), &at_s));
    cr_expect_not(log_time_utc(SLICE("2000-10-10T20:55:36Z"), SLICE("20:55:36"), &at_s));
    cr_expect_not(log_time_utc(SLICE("2000-10-10"),
        SLICE("20:55:36.000000000000000000000000000000000000000000000000000000000"), &at_s));
}
