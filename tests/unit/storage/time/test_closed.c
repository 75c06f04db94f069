#include "storage/time/closed.h"

#include <criterion/criterion.h>

static bool same(const struct rollup_state *a, const struct rollup_state *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* twice four int64_t: no padding */
}

static void check_round_trip(struct rollup_state state, const char *expected)
{
    char text[ROLLUP_STATE_TEXT];
    size_t n = rollup_state_print(&state, text);
    struct rollup_state back;

    cr_expect_str_eq(text, expected);
    cr_expect_eq(n, strlen(expected));
    cr_assert(rollup_state_parse(slice_of(text), &back), "%s", text);
    cr_expect(same(&state, &back), "%s", text);
}

Test(rollup_state, prints_and_parses)
{
    check_round_trip((struct rollup_state){{0, 6, 4, 2}, {0, 5, 3, 1}}, "6 5 4 3 2 1");
    check_round_trip((struct rollup_state){{0}, {0}}, "0 0 0 0 0 0");
    check_round_trip((struct rollup_state){{0, 1795190400, 1795132800, 1793491200},
                         {0, 1795186800, 1795132800, 1793491200}},
        "1795190400 1795186800 1795132800 1795132800 1793491200 1793491200");
    check_round_trip(
        (struct rollup_state){{0, -10, -12, -14}, {0, -11, -13, -15}}, "-10 -11 -12 -13 -14 -15");
}

Test(rollup_state, the_longest_text_fits)
{
    int64_t min = INT64_MIN;

    check_round_trip((struct rollup_state){{0, min, min, min}, {0, min, min, min}},
        "-9223372036854775808 -9223372036854775808 -9223372036854775808 -9223372036854775808 "
        "-9223372036854775808 -9223372036854775808");
    check_round_trip(
        (struct rollup_state){{0, INT64_MAX, 0, 0}, {0, 0, 0, 0}}, "9223372036854775807 0 0 0 0 0");
}

Test(rollup_state, refuses_what_print_cannot_have_written)
{
    static const char *const texts[] = {
        "", "6", "6 5 4 3 2", "6 5 4 3 2 ", "6 5 4 3 2 1 ", "6 5 4 3 2 1 0", " 6 5 4 3 2 1",
        "6  5 4 3 2 1", "6\t5 4 3 2 1", "+6 5 4 3 2 1", "06 5 4 3 2 1", "6 5 4 3 2 -0",
        "6 5 4 3 2 00", "6 5 4 3 2 -", "6 5 4 3 2 --1", "6 5 4 3 2 -01", "6 5 4 3 2 1x",
        "6 5 4 3 2 1.0", "0x6 5 4 3 2 1", "9223372036854775808 5 4 3 2 1",
        "6 5 4 3 2 -9223372036854775809", "99999999999999999999999999 5 4 3 2 1",
        "5 6 4 3 2 1", /* readers ahead of writers */
        "6 3 4 3 2 1", /* a day closing over an open hour */
        "6 5 4 2 3 1", /* a month closing over an open day */
    };
    const struct rollup_state before = {{9, 9, 9, 9}, {8, 8, 8, 8}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rollup_state state = before;

        cr_expect_not(rollup_state_parse(slice_of(texts[i]), &state), "\"%s\"", texts[i]);
        cr_expect(same(&state, &before), "\"%s\"", texts[i]);
    }
    cr_expect_not(rollup_state_parse((struct slice){NULL, 0}, &(struct rollup_state){{0}, {0}}));
}

Test(rollup_state, reads_no_further_than_the_slice)
{
    struct rollup_state state;

    cr_assert(rollup_state_parse((struct slice){"6 5 4 3 2 123", 11}, &state));
    cr_assert_eq(state.readers_s[LEVEL_MONTH], 1);
}

Test(rollup_state, initial_closes_all_before_the_current_buckets)
{
    int64_t now_s = 1795188659; /* 2026-11-20T15:30:59Z */
    struct rollup_state state = rollup_state_initial(now_s);
    const struct rollup_state expected = {
        {0, 1795186800, 1795132800, 1793491200}, {0, 1795186800, 1795132800, 1793491200}};
    char text[ROLLUP_STATE_TEXT];

    cr_assert(same(&state, &expected));
    rollup_state_print(&state, text);
    cr_assert(rollup_state_parse(slice_of(text), &state));
    for (enum level level = LEVEL_HOUR; level <= LEVEL_MONTH; level++) {
        struct bucket open = bucket_at(zone_utc(), level, now_s);
        struct bucket last = bucket_at(zone_utc(), level, open.start_s - 1);

        cr_expect_not(closed_for_writers(&state, open));
        cr_expect(closed_for_writers(&state, last));
        cr_expect(closed_for_readers(&state, last));
    }
}

Test(rollup_state, closing_comes_before_closed)
{
    /* the hour [3600, 7200) is closing */
    const struct rollup_state state = {{0, 7200, 0, 0}, {0, 3600, 0, 0}};
    struct bucket first = bucket_at(zone_utc(), LEVEL_HOUR, 0);
    struct bucket closing = bucket_at(zone_utc(), LEVEL_HOUR, 3600);

    cr_expect(closed_for_writers(&state, first) && closed_for_readers(&state, first));
    cr_expect(closed_for_writers(&state, closing) && !closed_for_readers(&state, closing));
    cr_expect_not(closed_for_writers(&state, bucket_at(zone_utc(), LEVEL_HOUR, 7200)));
    cr_expect_not(closed_for_writers(&state, bucket_at(zone_utc(), LEVEL_DAY, 0)));
    cr_expect_not(closed_for_readers(&state, bucket_at(zone_utc(), LEVEL_MINUTE, 0)),
        "minutes are never rolled up");
}
