#include "service/options/option_value.h"

#include <criterion/criterion.h>

TestSuite(option_value, .timeout = 60);

/* ---- what works ---- */

Test(option_value, sizes_and_durations_come_back)
{
    static const char *const sizes[] = {
        "0", "1", "1023", "1KiB", "8MiB", "1GiB", "3TiB", "1025KiB"};
    static const char *const durations[] = {"0s", "500ms", "10s", "30m", "47h", "62d", "1100d"};
    char text[OPTION_VALUE_TEXT];
    int64_t value;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        cr_assert(option_parse_size(sizes[i], &value), "%s", sizes[i]);
        cr_expect_str_eq(option_format_size(value, text), sizes[i]);
    }
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        cr_assert(option_parse_duration(durations[i], &value), "%s", durations[i]);
        cr_expect_str_eq(option_format_duration(value, text), durations[i]);
    }
}

/* ---- what is refused ---- */

Test(option_value, nonsense)
{
    static const char *const numbers[] = {
        "", " 1", "1 ", "+1", "-1", "1.5", "0x1", "9223372036854775808", "1KiB", "one"};
    static const char *const sizes[] = {
        "", "KiB", "1kib", "1 KiB", "1KB", "1M", "1.5MiB", "9007199254740992KiB", "-1KiB"};
    static const char *const durations[] = {
        "", "10", "s", "1h30m", "1.5h", "10S", "1w", "-1s", "9223372036854775807s", "forever"};
    int64_t value = 7;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        cr_expect_not(option_parse_integer(numbers[i], &value), "%s", numbers[i]);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        cr_expect_not(option_parse_size(sizes[i], &value), "%s", sizes[i]);
    }
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        cr_expect_not(option_parse_duration(durations[i], &value), "%s", durations[i]);
    }
    cr_expect_eq(value, 7);
}

Test(option_value, rates)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0.01", 0.01}, {"1", 1}, {".5", 0.5}, {"0.000001", 1e-6}, {"0", 0}};
    static const char *const bad[] = {
        "", ".", "1.2.3", "-1", "+1", "1e-3", "0x1", " 1", "1 ", "nan", "inf", "1%", "0,5"};
    double value = 7;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cr_expect(option_parse_rate(good[i].text, &value), "%s", good[i].text);
        cr_expect_eq(value, good[i].value);
    }
    value = 7;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_not(option_parse_rate(bad[i], &value), "%s", bad[i]);
    }
    cr_expect_eq(value, 7);
}

Test(option_value, truths)
{
    static const char *const none[] = {"", "ON", "yes", "1", "truer", "offf", "on "};
    bool on = false;
    cr_expect(option_parse_bool("on", &on) && on);
    cr_expect(option_parse_bool("off", &on) && !on);
    cr_expect(option_parse_bool("true", &on) && on);
    cr_expect(option_parse_bool("false", &on) && !on);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        cr_expect_not(option_parse_bool(none[i], &on), "%s", none[i]);
    }
}
