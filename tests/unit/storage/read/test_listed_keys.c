#include "storage/read/listed_keys.h"

#include <criterion/criterion.h>
#include <string.h>

#include "storage/time/units.h"

TestSuite(listed_keys, .timeout = 60);

static struct core core;

/* A reading whose answer tells keys, at @now_s. */
static struct proved_read read_at(struct window_question *asked, int64_t now_s)
{
    asked->site = SLICE("s");
    memcpy(core.partitions.tag[0], "{a}", 4);
    return (struct proved_read){
        .core = &core, .asked = asked, .now_s = now_s, .minutes_room = COUNTED_KEYS_MAX};
}

static enum storage_err add(struct proved_read *r, enum key_kind kind,
    const struct slice *const *pages, size_t n_pages, struct bucket bucket)
{
    struct cover cover = {.buckets = &bucket, .n = 1};
    cover.per_level[bucket.level] = 1;
    return listed_keys_add(r, 0, kind, pages, n_pages, &cover);
}

static struct bucket hour_at(int64_t hour)
{
    return (struct bucket){LEVEL_HOUR, hour * HOUR_S, (hour + 1) * HOUR_S};
}

Test(listed_keys, what_is_over_is_told_as_it_is_and_the_future_by_minutes)
{
    const struct slice names[] = {SLICE("/b"), SLICE("/a")};
    const struct slice *pages[] = {&names[0], &names[1]};
    struct window_question told = {.explain = true};
    struct proved_read r = read_at(&told, 10 * HOUR_S);
    cr_assert_eq(add(&r, KEY_UV, pages, 2, hour_at(40)), STORAGE_OK);
    cr_assert_eq(add(&r, KEY_UV, pages, 2, hour_at(9)), STORAGE_OK);
    cr_expect_eq(told.per_level[LEVEL_HOUR], 2);
    cr_expect_eq(told.per_level[LEVEL_MINUTE], 120);
    cr_assert_eq(told.n_keys, 122);
    listed_keys_sort(&told);
    cr_expect_eq(told.keys[0].bucket.level, LEVEL_HOUR);
    int64_t at_s = 40 * HOUR_S;
    for (size_t i = 2; i < told.n_keys; i++) {
        struct key key;
        struct bucket bucket = {.level = LEVEL_MINUTE, .start_s = at_s, .end_s = at_s + 60};
        key_bucket(&key, "{a}", KEY_UV, SLICE("s"), bucket, names[i % 2 == 0 ? 1 : 0]);
        cr_assert_eq(told.keys[i].bucket.start_s, at_s);
        cr_assert_eq(told.keys[i].bucket.end_s, at_s + 60);
        cr_assert_eq(told.keys[i].n, key.n);
        cr_assert_eq(memcmp(told.keys[i].key, key.p, key.n), 0);
        at_s += i % 2 == 0 ? 0 : 60;
    }
    listed_keys_clear(&r);
    cr_expect_null(told.keys);
    cr_expect_eq(told.n_keys, 0);
    cr_expect_eq(told.per_level[LEVEL_HOUR], 0);
}

Test(listed_keys, no_more_are_listed_than_an_answer_may_have)
{
    static char text[2048];
    struct slice name = {text, sizeof(text)};
    const struct slice *pages[] = {&name};
    struct window_question told = {.explain = true};
    struct proved_read r = read_at(&told, 100 * HOUR_S);
    memset(text, 'x', sizeof(text));
    for (size_t n = 0; n < COUNTED_BYTES_MAX / sizeof(text); n++) {
        cr_assert_eq(add(&r, KEY_UV, pages, 1, hour_at(0)), STORAGE_OK);
    }
    cr_expect_eq(add(&r, KEY_UV, pages, 1, hour_at(0)), STORAGE_TOO_BROAD);
    listed_keys_clear(&r);
    /* one key for all pages: their names are not in it */
    for (size_t n = 0; n < 2 * COUNTED_BYTES_MAX / sizeof(text); n++) {
        cr_assert_eq(add(&r, KEY_PV, pages, 1, hour_at(0)), STORAGE_OK);
    }
    listed_keys_clear(&r);
}

Test(listed_keys, too_many_minutes_stay_what_they_are)
{
    const struct slice name = SLICE("/");
    const struct slice *pages[] = {&name};
    struct window_question listed = {.explain = true};
    struct window_question only_counted = {.explain = false};
    struct proved_read one = read_at(&listed, 0);
    struct proved_read other = read_at(&only_counted, 0);
    for (int64_t day = 10; day < 60; day++) {
        struct bucket bucket = {LEVEL_DAY, day * DAY_S, (day + 1) * DAY_S};
        cr_assert_eq(add(&one, KEY_UV, pages, 1, bucket), STORAGE_OK);
        cr_assert_eq(add(&other, KEY_UV, pages, 1, bucket), STORAGE_OK);
    }
    cr_expect_eq(listed.per_level[LEVEL_MINUTE], 34 * 1440);
    cr_expect_eq(listed.per_level[LEVEL_DAY], 16);
    cr_expect_eq(listed.n_keys, 34 * 1440 + 16);
    cr_expect_eq(memcmp(listed.per_level, only_counted.per_level, sizeof(listed.per_level)), 0);
    cr_expect_null(only_counted.keys);
    listed_keys_clear(&one);
}

/* What comes behind the minutes must have room, too. */
Test(listed_keys, minutes_leave_room_for_all_keys_of_the_plan)
{
    const struct slice name = SLICE("/");
    const struct slice *pages[] = {&name};
    struct window_question told = {.explain = true};
    struct proved_read r = read_at(&told, 100 * HOUR_S);
    r.keys_planned = 2 + 20000;
    listed_keys_clear(&r);
    for (int64_t day = 10; day < 40; day += 15) {
        struct bucket bucket = {LEVEL_DAY, day * DAY_S, (day + 15) * DAY_S};
        cr_assert_eq(add(&r, KEY_UV, pages, 1, bucket), STORAGE_OK);
    }
    for (int n = 0; n < 20000; n++) {
        cr_assert_eq(add(&r, KEY_UV, pages, 1, hour_at(9)), STORAGE_OK);
    }
    cr_expect_eq(told.per_level[LEVEL_MINUTE], 15 * 1440);
    cr_expect_eq(told.per_level[LEVEL_DAY], 1);
    cr_expect_eq(told.n_keys, 15 * 1440 + 1 + 20000);
    listed_keys_clear(&r);
}

/* Without a list the plan says how many there are. */
Test(listed_keys, a_plan_that_is_over_is_counted_by_its_levels)
{
    const struct slice name = SLICE("/");
    const struct slice *pages[] = {&name, &name};
    struct window_question told = {.explain = false};
    struct proved_read r = read_at(&told, 10 * HOUR_S);
    const struct cover cover = {
        .buckets = (struct bucket[]){hour_at(8)}, .n = 1, .per_level = {[LEVEL_HOUR] = 7}};
    cr_assert_eq(listed_keys_add(&r, 0, KEY_UV, pages, 2, &cover), STORAGE_OK);
    cr_expect_eq(told.per_level[LEVEL_HOUR], 14);
}
