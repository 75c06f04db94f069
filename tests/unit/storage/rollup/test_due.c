/* When the next pass is due: rollup_due_s() of rollup/pass.h. */
#include "storage/rollup/pass.h"

#include <criterion/criterion.h>

#include "tests/lib/utc.h"

static const struct zone *utc_zone[1];
static struct site_zones utc_only = {.zones = utc_zone, .n_zones = 1};

static void setup(void)
{
    utc_zone[0] = zone_utc();
}

TestSuite(rollup_due, .init = setup, .timeout = 60);

static struct rollup_state state_of(const char *hour, const char *day, const char *month)
{
    struct rollup_state state = {
        {0, utc(hour), utc(day), utc(month)}, {0, utc(hour), utc(day), utc(month)}};
    return state;
}

Test(rollup_due, after_the_current_hour_and_the_grace)
{
    struct rollup_state state =
        state_of("2026-11-20 15:00", "2026-11-20 00:00", "2026-11-01 00:00");
    cr_expect_eq(rollup_due_s(&utc_only, &state), utc("2026-11-20 16:00") + PASS_GRACE_S);
    state = rollup_state_initial(utc("2026-11-20 15:17"));
    cr_expect_eq(rollup_due_s(&utc_only, &state), utc("2026-11-20 16:00") + PASS_GRACE_S);
}

Test(rollup_due, at_once_if_parts_are_complete)
{
    static const char *const cases[][3] = {
        {"2026-11-20 00:00", "2026-11-19 00:00", "2026-11-01 00:00"}, /* a day's hours */
        {"2026-11-25 07:00", "2026-11-19 00:00", "2026-11-01 00:00"},
        {"2026-12-01 00:00", "2026-12-01 00:00", "2026-11-01 00:00"}, /* a month's days */
        {"2026-12-01 05:00", "2026-12-01 00:00", "2026-11-01 00:00"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rollup_state state = state_of(cases[i][0], cases[i][1], cases[i][2]);
        cr_expect_eq(rollup_due_s(&utc_only, &state), 0, "case %zu", i);
    }
}

Test(rollup_due, not_before_the_last_part)
{
    struct rollup_state state =
        state_of("2026-11-20 23:00", "2026-11-20 00:00", "2026-11-01 00:00");
    cr_expect_eq(rollup_due_s(&utc_only, &state), utc("2026-11-21 00:00") + PASS_GRACE_S);
    state = state_of("2026-11-30 23:00", "2026-11-30 00:00", "2026-11-01 00:00");
    cr_expect_eq(rollup_due_s(&utc_only, &state), utc("2026-12-01 00:00") + PASS_GRACE_S);
    state = state_of("2026-12-01 02:00", "2026-12-01 00:00", "2026-12-01 00:00");
    cr_expect_eq(rollup_due_s(&utc_only, &state), utc("2026-12-01 03:00") + PASS_GRACE_S);
}

/* A bucket that somebody marked and left: its end has passed, so it is due, whoever closes it. */
Test(rollup_due, goes_by_the_readers_stamp)
{
    struct rollup_state state =
        state_of("2026-11-20 15:00", "2026-11-20 00:00", "2026-11-01 00:00");
    state.writers_s[LEVEL_HOUR] = utc("2026-11-20 16:00");
    cr_expect_eq(rollup_due_s(&utc_only, &state), utc("2026-11-20 16:00") + PASS_GRACE_S);
    state = state_of("2026-11-21 00:00", "2026-11-20 00:00", "2026-11-01 00:00");
    state.writers_s[LEVEL_DAY] = utc("2026-11-21 00:00");
    cr_expect_eq(rollup_due_s(&utc_only, &state), 0);
}

/* A week behind: pass by pass, in order, until the hour of now is next. */
Test(rollup_due, catches_up_and_stops)
{
    struct rollup_state state =
        state_of("2026-11-27 05:00", "2026-11-27 00:00", "2026-11-01 00:00");
    int64_t now_s = utc("2026-12-04 15:17");
    unsigned passes[LEVELS] = {0};
    for (int i = 0; i < 1000 && rollup_due_s(&utc_only, &state) <= now_s; i++) {
        enum level level = LEVEL_HOUR;
        for (int up = LEVEL_MONTH; up > LEVEL_HOUR; up--) {
            struct bucket next = bucket_at(zone_utc(), (enum level)up, state.readers_s[up]);
            level = next.end_s <= state.readers_s[up - 1] ? (enum level)up : level;
        }
        struct bucket done = bucket_at(zone_utc(), level, state.readers_s[level]);
        cr_assert_leq(done.end_s, now_s, "not before its end");
        state.readers_s[level] = state.writers_s[level] = done.end_s;
        passes[level]++;
    }
    cr_expect_eq(passes[LEVEL_HOUR], 7u * 24 + 10);
    cr_expect_eq(passes[LEVEL_DAY], 7u);
    cr_expect_eq(passes[LEVEL_MONTH], 1u);
    cr_expect_eq(rollup_due_s(&utc_only, &state), utc("2026-12-04 16:00") + PASS_GRACE_S);
}
