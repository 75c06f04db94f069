#include "storage/read/listed_keys.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(counted_keys, .timeout = 60);

#define HOUR_S 3600

struct told {
    uint32_t per_level[LEVELS];
    struct counted_key *keys;
    size_t n, page_bytes;
};

static struct counted_keys counted_at(struct told *told, bool explain, int64_t now_s)
{
    return (struct counted_keys){.per_level = told->per_level,
        .keys = explain ? &told->keys : NULL,
        .n = &told->n,
        .page_bytes = &told->page_bytes,
        .now_s = now_s};
}

static struct counted_bucket bucket_of(const struct slice *const *pages, size_t n_pages,
    enum level level, int64_t from_s, int64_t to_s)
{
    return (struct counted_bucket){.tag = "{a}",
        .kind = KEY_UV,
        .site = SLICE("s"),
        .pages = pages,
        .n_pages = n_pages,
        .bucket = {.level = level, .start_s = from_s, .end_s = to_s}};
}

Test(counted_keys, what_is_over_is_told_as_it_is_and_the_future_by_minutes)
{
    const struct slice names[] = {SLICE("/b"), SLICE("/a")};
    const struct slice *pages[] = {&names[0], &names[1]};
    struct told told = {0};
    struct counted_keys counted = counted_at(&told, true, 10 * HOUR_S);
    struct counted_bucket ahead = bucket_of(pages, 2, LEVEL_HOUR, 40 * HOUR_S, 41 * HOUR_S);
    struct counted_bucket over = bucket_of(pages, 2, LEVEL_HOUR, 9 * HOUR_S, 10 * HOUR_S);
    cr_assert_eq(counted_keys_add(&counted, &ahead), STORAGE_OK);
    cr_assert_eq(counted_keys_add(&counted, &over), STORAGE_OK);
    cr_expect_eq(told.per_level[LEVEL_HOUR], 2);
    cr_expect_eq(told.per_level[LEVEL_MINUTE], 120);
    cr_assert_eq(told.n, 122);
    counted_keys_sort(told.keys, told.n);
    cr_expect_eq(told.keys[0].bucket.level, LEVEL_HOUR);
    int64_t at_s = 40 * HOUR_S;
    for (size_t i = 2; i < told.n; i++) {
        struct key key;
        struct bucket bucket = {.level = LEVEL_MINUTE, .start_s = at_s, .end_s = at_s + 60};
        key_bucket(&key, "{a}", KEY_UV, SLICE("s"), bucket, names[i % 2 == 0 ? 1 : 0]);
        cr_assert_eq(told.keys[i].bucket.start_s, at_s);
        cr_assert_eq(told.keys[i].bucket.end_s, at_s + 60);
        cr_assert_eq(told.keys[i].n, key.n);
        cr_assert_eq(memcmp(told.keys[i].key, key.p, key.n), 0);
        at_s += i % 2 == 0 ? 0 : 60;
    }
    counted_keys_release(&told.keys, &told.n);
    cr_expect_null(told.keys);
    cr_expect_eq(told.n, 0);
}

Test(counted_keys, no_more_are_listed_than_an_answer_may_have)
{
    static char text[2048];
    struct slice name = {text, sizeof(text)};
    const struct slice *pages[] = {&name};
    struct told told = {0};
    struct counted_keys counted = counted_at(&told, true, 100 * HOUR_S);
    struct counted_bucket over = bucket_of(pages, 1, LEVEL_HOUR, 0, HOUR_S);
    memset(text, 'x', sizeof(text));
    for (size_t n = 0; n < COUNTED_BYTES_MAX / sizeof(text); n++) {
        cr_assert_eq(counted_keys_add(&counted, &over), STORAGE_OK);
    }
    cr_expect_eq(counted_keys_add(&counted, &over), STORAGE_TOO_BROAD);
    counted_keys_release(&told.keys, &told.n);
    told = (struct told){0};
    over.kind = KEY_PV; /* one key for all pages: their names are not in it */
    for (size_t n = 0; n < 2 * COUNTED_BYTES_MAX / sizeof(text); n++) {
        cr_assert_eq(counted_keys_add(&counted, &over), STORAGE_OK);
    }
    counted_keys_release(&told.keys, &told.n);
}

Test(counted_keys, too_many_minutes_stay_what_they_are)
{
    const struct slice name = SLICE("/");
    const struct slice *pages[] = {&name};
    struct told listed = {0};
    struct told only_counted = {0};
    struct counted_keys one = counted_at(&listed, true, 0);
    struct counted_keys other = counted_at(&only_counted, false, 0);
    for (int64_t day = 10; day < 60; day++) {
        struct counted_bucket what =
            bucket_of(pages, 1, LEVEL_DAY, day * 24 * HOUR_S, (day + 1) * 24 * HOUR_S);
        cr_assert_eq(counted_keys_add(&one, &what), STORAGE_OK);
        cr_assert_eq(counted_keys_add(&other, &what), STORAGE_OK);
    }
    cr_expect_eq(listed.per_level[LEVEL_MINUTE], 34 * 1440);
    cr_expect_eq(listed.per_level[LEVEL_DAY], 16);
    cr_expect_eq(listed.n, 34 * 1440 + 16);
    cr_expect_eq(memcmp(listed.per_level, only_counted.per_level, sizeof(listed.per_level)), 0);
    cr_expect_null(only_counted.keys);
    counted_keys_release(&listed.keys, &listed.n);
}
