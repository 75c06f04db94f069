#include "storage/schema/settings.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

#include "storage/schema/partition.h"
#include "storage/time/units.h"
#include "tests/lib/dice.h"

TestSuite(settings, .timeout = 60);

static struct retention keeping(
    int64_t minutes_s, int64_t hours_s, int64_t days_s, int64_t months_s)
{
    return (struct retention){.keep_s = {minutes_s, hours_s, days_s, months_s}};
}

static bool same(const struct retention *a, const struct retention *b)
{
    return memcmp(a, b, sizeof(*a)) == 0; /* int64_t only: no padding */
}

/* ---- cfg ---- */

Test(settings, cfg_as_text)
{
    struct retention retention = keeping(172800, 5356800, 95040000, KEEP_FOREVER);
    char text[SETTINGS_TEXT];
    settings_print(16, &retention, 0, text);
    cr_expect_str_eq(text, "schema=16 partitions=16 keep=172800,5356800,95040000,-");
    retention = keeping(0, KEEP_FOREVER, 1, 999999999999999999);
    settings_print(64, &retention, 0, text);
    cr_expect_str_eq(text, "schema=16 partitions=64 keep=0,-,1,999999999999999999");
    settings_print(1024, &retention, UINT64_C(0x1f), text);
    settings_put_set(text, UINT64_C(0xabcdef0123456789));
    cr_expect_str_eq(text, "schema=16 partitions=1024 keep=0,-,1,999999999999999999 "
                           "zones=000000000000001f set=abcdef0123456789");
}

Test(settings, the_longest_cfg_fits)
{
    struct retention r = keeping(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX);
    char text[SETTINGS_TEXT];
    settings_print(PARTITIONS_MAX, &r, UINT64_MAX, text);
    settings_put_set(text, UINT64_MAX);
    cr_expect_str_eq(text + strlen(text) - 4, "ffff");
    cr_expect_lt(strlen(text), SETTINGS_TEXT - 1);
}

Test(settings, the_data_set_alone)
{
    static const char *const none[] = {"", "set=0123456789abcdef", " set=0123456789abcde",
        " set=0123456789ABCDEF", " set=0123456789abcdef ", " sets=123456789abcdef0"};
    uint64_t set = 7;
    cr_expect(settings_set(SLICE("anything set=00000000000000ff"), &set));
    cr_expect_eq(set, 255);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        cr_expect_not(settings_set(slice_of(none[i]), &set), "%s", none[i]);
        cr_expect_eq(set, 255);
    }
}

static int64_t random_time(struct dice *dice)
{
    return dice_chance(dice, 200) ? KEEP_FOREVER
                                  : dice_below(dice, INT64_C(1) << dice_below(dice, 59));
}

Test(settings, both_texts_come_back)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    for (int i = 0; i < 2000; i++) {
        unsigned partitions = 1 + (unsigned)dice_below(&dice, PARTITIONS_MAX);
        struct retention r;
        struct retention back = {{0}, {0}, {0}};
        char text[SETTINGS_TEXT];
        uint64_t set = (uint64_t)dice_below(&dice, INT64_MAX);
        uint64_t found = 0;
        for (int level = 0; level < LEVELS; level++) {
            r.keep_s[level] = random_time(&dice);
            r.until_s[level] = dice_below(&dice, 4102444800);
            r.before_s[level] = random_time(&dice);
        }
        settings_print(partitions, &r,
            dice_below(&dice, 2) == 0 ? 0 : (uint64_t)dice_below(&dice, INT64_MAX), text);
        cr_assert_not(settings_parse(slice_of(text), partitions, &back, &found), "it names no set");
        settings_put_set(text, set);
        cr_assert(settings_parse(slice_of(text), partitions, &back, &found) && found == set,
            "TALLYD_TEST_SEED=%" PRIu64 ": %s", seed, text);
        kept_print(&r, text);
        cr_assert(
            kept_parse(slice_of(text), &back), "TALLYD_TEST_SEED=%" PRIu64 ": %s", seed, text);
        cr_assert(same(&r, &back), "TALLYD_TEST_SEED=%" PRIu64 ": %s", seed, text);
    }
}

Test(settings, cfg_of_others)
{
    static const char *const texts[] = {"",
        "schema=16 partitions=16 keep=", "schema=8 partitions=16 keep=1,2,3",
        "schema=16 partitions=16 keep=1,2,3,", "schema=8 partitions=16 keep=1,2,3,4,5",
        "schema=16 partitions=16 keep=1,2,3,4 ", " schema=8 partitions=16 keep=1,2,3,4",
        "schema=4 partitions=16 keep=1,2,3,4", "schema=16 partitions=8 keep=1,2,3,4",
        "schema=16 partitions=160 keep=1,2,3,4", "schema=8 partitions=16 keep=1,,3,4",
        "schema=16 partitions=16 keep=1,-2,3,4", "schema=8 partitions=16 keep=1,2,3,--",
        "schema=16 partitions=16 keep=1,2,3,0x4",
        "schema=16 partitions=16 keep=1,2,3,9999999999999999999",
        "schema=16 partitions=16 keep=1 2 3 4", "SCHEMA=1 partitions=16 keep=1,2,3,4",
        "schema=16 partitions=16 keep=1,2,3,4 zones=123"};
    const struct retention before = keeping(7, 7, 7, 7);
    struct retention r = before;
    uint64_t set = 7;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "%s set=0123456789abcdef", texts[i]);
        cr_expect_not(settings_parse(slice_of(text), 16, &r, &set), "%s", text);
        cr_expect(same(&r, &before) && set == 7, "%s", text);
    }
    static const char *const ends[] = {"", " set=0123456789abcde", " set=0123456789abcdef ",
        " set=0123456789abcdef zones=0123456789abcdef", " set=0123456789ABCDEF"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "schema=16 partitions=16 keep=1,2,3,4%s", ends[i]);
        cr_expect_not(settings_parse(slice_of(text), 16, &r, &set), "%s", text);
        cr_expect(same(&r, &before) && set == 7, "%s", text);
    }
}

/* ---- kept ---- */

Test(settings, kept_as_text)
{
    struct retention r = {.keep_s = {9, 9, 9, 9},
        .until_s = {0, 1795190400, 5, 0},
        .before_s = {0, 60, KEEP_FOREVER, 0}};
    struct retention back = keeping(9, 9, 9, 9);
    char text[SETTINGS_TEXT];
    kept_print(&r, text);
    cr_expect_str_eq(text, "0 0 1795190400 60 5 - 0 0");
    cr_expect(kept_parse(slice_of(text), &back));
    cr_expect(same(&r, &back), "keep times stay");
}

Test(settings, kept_of_others)
{
    static const char *const texts[] = {"", "0 0 0 0 0 0 0", "0 0 0 0 0 0 0 ", "0 0 0 0 0 0 0 0 ",
        "0 0 0 0 0 0 0 0 0", " 0 0 0 0 0 0 0 0", "0  0 0 0 0 0 0 0", "0 0 0 0 0 0 0 x",
        "-1 0 0 0 0 0 0 0", "0,0 0 0 0 0 0 0"};
    const struct retention before = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct retention r = before;
        cr_expect_not(kept_parse(slice_of(texts[i]), &r), "%s", texts[i]);
        cr_expect(same(&r, &before), "%s", texts[i]);
    }
}

/* ---- a change of retention ---- */

static struct rollup_state state_at(int64_t hour_s, int64_t day_s, int64_t month_s)
{
    return (struct rollup_state){{0, hour_s, day_s, month_s}, {0, hour_s, day_s, month_s}};
}

static void check_level(const struct retention *r, enum level level, int64_t keep_s,
    int64_t until_s, int64_t before_s, int line)
{
    cr_expect(r->keep_s[level] == keep_s && r->until_s[level] == until_s &&
                  (until_s == 0 || r->before_s[level] == before_s),
        "line %d: %lld %lld %lld", line, (long long)r->keep_s[level], (long long)r->until_s[level],
        (long long)r->before_s[level]);
}
#define CHECK_LEVEL(level, keep_s, until_s, before_s)                                              \
    check_level(&r, level, keep_s, until_s, before_s, __LINE__)

Test(settings, the_same_again_changes_nothing)
{
    struct retention r = keeping(10, 20, 30, KEEP_FOREVER);
    struct rollup_state state = state_at(5000, 4000, 3000);
    struct retention changed = retention_changed(&r, &r, &state);
    cr_expect(same(&r, &changed));
}

/* What has its expiry already, that is, whose parent is closed for readers, keeps it. */
Test(settings, lengthening)
{
    struct retention old = keeping(10, 20, 30, 40);
    struct retention longer = keeping(11, 21, 31, KEEP_FOREVER);
    struct rollup_state state = state_at(5000, 4000, 3000);
    struct retention r = retention_changed(&old, &longer, &state);
    CHECK_LEVEL(LEVEL_MINUTE, 11, 5000, 10);
    CHECK_LEVEL(LEVEL_HOUR, 21, 4000, 20);
    CHECK_LEVEL(LEVEL_DAY, 31, 3000, 30);
    CHECK_LEVEL(LEVEL_MONTH, KEEP_FOREVER, 3000, 40);
    cr_expect_eq(retention_keep_s(&r, (struct bucket){LEVEL_MINUTE, 4940, 5000}), 10);
    cr_expect_eq(retention_keep_s(&r, (struct bucket){LEVEL_MINUTE, 5000, 5060}), 11);
}

/* Readers go by the new time at once. */
Test(settings, shortening)
{
    struct retention old = keeping(10, 20, 30, KEEP_FOREVER);
    struct retention shorter = keeping(9, 0, 29, 28);
    struct rollup_state state = state_at(5000, 4000, 3000);
    struct retention r = retention_changed(&old, &shorter, &state);
    CHECK_LEVEL(LEVEL_MINUTE, 9, 0, 0);
    CHECK_LEVEL(LEVEL_HOUR, 0, 0, 0);
    CHECK_LEVEL(LEVEL_DAY, 29, 0, 0);
    CHECK_LEVEL(LEVEL_MONTH, 28, 0, 0);
}

Test(settings, lengthening_again)
{
    struct rollup_state first = state_at(5000, 4000, 3000);
    struct rollup_state second = state_at(6000, 4000, 3000);
    struct retention r = keeping(10, 20, 30, 40);
    struct retention to = keeping(15, 20, 30, 40);
    r = retention_changed(&r, &to, &first);
    to.keep_s[LEVEL_MINUTE] = 25;
    r = retention_changed(&r, &to, &second);
    CHECK_LEVEL(LEVEL_MINUTE, 25, 6000, 10); /* the shortest of those before */
    CHECK_LEVEL(LEVEL_HOUR, 20, 0, 0);
}

Test(settings, shortening_between)
{
    struct rollup_state first = state_at(5000, 4000, 3000);
    struct rollup_state second = state_at(6000, 4000, 3000);
    struct retention r = keeping(10, 20, 30, 40);
    struct retention to = r;
    to.keep_s[LEVEL_MINUTE] = 25;
    r = retention_changed(&r, &to, &first);
    to.keep_s[LEVEL_MINUTE] = 5;
    r = retention_changed(&r, &to, &second);
    cr_expect_eq(retention_keep_s(&r, (struct bucket){LEVEL_MINUTE, 4940, 5000}), 5);
    cr_expect_eq(retention_keep_s(&r, (struct bucket){LEVEL_MINUTE, 6000, 6060}), 5);
    to.keep_s[LEVEL_MINUTE] = 12;
    r = retention_changed(&r, &to, &second);
    CHECK_LEVEL(LEVEL_MINUTE, 12, 6000, 5);
}

/* A reader never believes that something is kept longer than any expiry it was ever given.  One
 * bucket of a level; hours (or what its parent is) close and keep times change at random. */
static void check_promises(struct dice *dice, uint64_t seed, enum level level)
{
    enum level up = level == LEVEL_MONTH ? LEVEL_MONTH : (enum level)(level + 1);
    struct retention r = keeping(50, 50, 50, 50);
    struct rollup_state state = state_at(1000, 1000, 1000);
    int64_t granted_s[40];
    int n =
        0; /* buckets with an expiry: bucket i ends at 1000 + 10 * (i + 1), and is its own parent */
    for (int step = 0; step < 60; step++) {
        if (dice_chance(dice, 400) && n < 40) {
            struct bucket bucket = {level, 1000 + 10 * n, 1000 + 10 * (n + 1)};
            state.readers_s[up] = bucket.end_s;
            granted_s[n++] = retention_keep_s(&r, bucket);
        } else {
            struct retention to = r;
            to.keep_s[level] = dice_chance(dice, 100) ? KEEP_FOREVER : dice_below(dice, 100);
            r = retention_changed(&r, &to, &state);
            cr_assert_eq(r.keep_s[level], to.keep_s[level]);
        }
        for (int i = 0; i < n; i++) {
            struct bucket bucket = {level, 1000 + 10 * i, 1000 + 10 * (i + 1)};
            int64_t keep_s = retention_keep_s(&r, bucket);
            cr_assert_leq(keep_s, granted_s[i], "TALLYD_TEST_SEED=%" PRIu64 ": %s %d", seed,
                level_name(level), i);
            /* a late write may give a new key of it this expiry */
            granted_s[i] = keep_s < granted_s[i] && dice_chance(dice, 300) ? keep_s : granted_s[i];
        }
        struct bucket next = {level, 1000 + 10 * n, 1000 + 10 * (n + 1)};
        cr_assert_eq(
            retention_keep_s(&r, next), r.keep_s[level], "what has no expiry gets the new one");
    }
}

Test(settings, no_promise_is_longer_than_an_expiry)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    for (int i = 0; i < 2000; i++) {
        check_promises(&dice, seed, (enum level)(i % LEVELS));
    }
}
