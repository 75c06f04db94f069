#include "storage/merge/merge_counts.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/commands.h"
#include "tests/lib/dice.h"
#include "tests/lib/hll_add.h"
#include "tests/lib/row_sites.h"

/* Counters of old buckets are asked for, then set; sketches that are new are set. */
TestSuite(merge_counts_ask, .timeout = 120);

#define TAG   "7"
#define NOW_S INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */
#define STATE SLICE("state")

static const struct storage_config caps = {.max_pages = 4, .max_values = 3};
static const struct storage_config no_caps;
static struct known_hashes expiries;
static struct known_sketches sketches;

/* ---- what Redis has ---- */

struct value {
    char key[96], field[32];
    int64_t count;
    struct hll *sketch; /* of a key without field */
    bool expires;
};

struct store {
    struct value values[6000];
    size_t n;
};

static void store_clear(struct store *store)
{
    for (size_t i = 0; i < store->n; i++) {
        free(store->values[i].sketch);
    }
    store->n = 0;
}

static struct value *store_find(struct store *store, struct slice key, struct slice field)
{
    for (size_t i = 0; i < store->n; i++) {
        if (slice_equal(slice_of(store->values[i].key), key) &&
            slice_equal(slice_of(store->values[i].field), field)) {
            return &store->values[i];
        }
    }
    return NULL;
}

static bool store_expires(const struct store *store, struct slice key)
{
    for (size_t i = 0; i + 1 < store->n; i++) {
        if (store->values[i].expires && slice_equal(slice_of(store->values[i].key), key)) {
            return true;
        }
    }
    return false;
}

static struct value *store_get(struct store *store, struct slice key, struct slice field)
{
    struct value *value = store_find(store, key, field);
    if (value == NULL) {
        value = &store->values[store->n++];
        cr_assert(store->n < sizeof(store->values) / sizeof(store->values[0]));
        cr_assert(key.n < sizeof(value->key) && field.n < sizeof(value->field));
        *value = (struct value){.expires = store_expires(store, key)};
        memcpy(value->key, key.p, key.n);
        memcpy(value->field, field.p, field.n);
    }
    return value;
}

static struct hll *store_sketch(struct store *store, struct slice key)
{
    struct value *value = store_get(store, key, SLICE(""));
    if (value->sketch == NULL) {
        value->sketch = calloc(1, sizeof(*value->sketch));
        cr_assert_not_null(value->sketch);
    }
    return value->sketch;
}

/* SET, also by MSET: there must be no sketch that would be lost. */
static void set_sketch(struct store *store, struct slice key, struct slice string)
{
    cr_assert_null(store_find(store, key, SLICE("")), "%s was there", key.p);
    cr_assert(hll_merge(store_sketch(store, key), string.p, string.n));
}

static void carry_out(struct store *store, const struct command *c)
{
    struct slice key = c->words[1];
    if (command_is(c, 0, "HINCRBY")) {
        store_get(store, key, c->words[2])->count += command_number(c, 3);
    } else if (command_is(c, 0, "ZINCRBY")) {
        store_get(store, key, c->words[3])->count += command_number(c, 2);
    } else if (command_is(c, 0, "HSET") || command_is(c, 0, "ZADD")) {
        size_t field = command_is(c, 0, "HSET") ? 0 : 1;
        for (size_t i = 2; i < c->n; i += 2) {
            store_get(store, key, c->words[i + field])->count = command_number(c, i + 1 - field);
        }
    } else if (command_is(c, 0, "PFADD")) {
        for (size_t i = 2; i < c->n; i++) {
            hll_add(store_sketch(store, key), c->words[i].p, c->words[i].n);
        }
    } else if (command_is(c, 0, "MSET")) {
        for (size_t i = 1; i < c->n; i += 2) {
            set_sketch(store, c->words[i], c->words[i + 1]);
        }
    } else if (command_is(c, 0, "SET")) {
        set_sketch(store, key, c->words[2]);
        cr_assert(c->n == 5 && command_is(c, 3, "PXAT"));
        store_get(store, key, SLICE(""))->expires = true;
    } else {
        cr_assert(command_is(c, 0, "PEXPIREAT"));
        for (size_t i = 0; i < store->n; i++) {
            if (slice_equal(slice_of(store->values[i].key), key)) {
                store->values[i].expires = true;
            }
        }
    }
}

static int64_t store_size(const struct store *store, struct slice key)
{
    int64_t n = 0;
    for (size_t i = 0; i < store->n; i++) {
        n += slice_equal(slice_of(store->values[i].key), key);
    }
    return n;
}

static void answer(struct store *store, struct merge_counts *merge, const struct command *c)
{
    struct reply *items = calloc(c->n, sizeof(*items));
    static char texts[3000][24];
    cr_assert_not_null(items);
    if (command_is(c, 0, "ZCARD")) {
        struct reply size = {.type = REPLY_INTEGER, .integer = store_size(store, c->words[1])};
        cr_assert(merge_counts_take(merge, &size));
        free(items);
        return;
    }
    cr_assert(command_is(c, 0, "HMGET") || command_is(c, 0, "ZMSCORE"));
    for (size_t i = 2; i < c->n; i++) {
        const struct value *value = store_find(store, c->words[1], c->words[i]);
        items[i - 2].type = value == NULL ? REPLY_NIL : REPLY_TEXT;
        if (value != NULL) {
            (void)snprintf(texts[i], sizeof(texts[i]), "%" PRId64, value->count);
            items[i - 2].text = slice_of(texts[i]);
        }
    }
    struct reply reply = {.type = REPLY_ARRAY, .items = items, .n = c->n - 2};
    cr_assert(merge_counts_take(merge, &reply));
    free(items);
}

/* Answer the @n questions in @out, and empty it. */
static void answer_all(
    struct store *store, struct merge_counts *merge, size_t n, struct buffer *out)
{
    struct commands commands;
    if (n > 0) {
        cr_assert(commands_read(out, &commands) && commands.n == n);
        for (size_t i = 0; i < commands.n; i++) {
            answer(store, merge, &commands.commands[i]);
        }
        commands_release(&commands);
        buffer_clear(out, 0);
    }
}

/* ---- a partition's folds ---- */

struct scene {
    struct dice dice;
    struct retention retention;
    struct rollup_state state;
    struct row rows[200];
    char users[200][8];
    struct store is, expected;
    size_t n_asked, n_rest, n_increments, n_set;
    int hours; /* all rows lie in so many old hours; 0: at some ages */
};

static void scene_init(struct scene *scene, uint64_t seed)
{
    scene->dice = dice_make(seed);
    scene->retention =
        (struct retention){.keep_s = {40 * 86400, 62 * 86400, KEEP_FOREVER, KEEP_FOREVER}};
    scene->state = rollup_state_initial(NOW_S);
    scene->state.readers_s[LEVEL_HOUR] -= 3600; /* the last hour is closing.. */
    scene->state.readers_s[LEVEL_DAY] -= 86400; /* ..and so is the last day */
    scene->is.n = scene->expected.n = 0;
    scene->n_asked = scene->n_rest = scene->n_increments = scene->n_set = 0;
    scene->hours = 0;
}

static struct row random_row(struct dice *dice)
{
    static const char *const pages[] = {"/", "/a", "/b", "/c"};
    static const int64_t ages_s[] = {0, 700, 3600, 7200, 86400, 2 * 86400, 35 * 86400, 50 * 86400};
    unsigned visitor = (unsigned)dice_below(dice, 30);
    struct row row = {.at_s = NOW_S - ages_s[dice_below(dice, 8)] - dice_below(dice, 100),
        .site = row_site_of(dice_chance(dice, 500) ? "shop" : "blog"),
        .page = slice_of(pages[dice_below(dice, 4)]),
        .has_visitor = visitor % 7 != 0,
        .has_address = visitor % 5 != 0};
    row.page_hash = page_hash(row.site->name, row.page);
    memcpy(row.visitor.bytes, &visitor, sizeof(visitor));
    memcpy(row.address.bytes, &visitor, sizeof(visitor));
    return row;
}

/* The row in one target, as an increment and two PFADD would count it. */
static void expect(struct scene *scene, const struct row *row, const struct write_target *target)
{
    struct key key;
    bool is_over = target->expire_ms != 0 && target->expire_ms <= NOW_S * 1000;
    if (is_over) {
        return;
    }
    struct slice none = SLICE("");
    key_bucket(&key, TAG, KEY_PV, row->site->name, target->bucket, none);
    store_get(&scene->expected, (struct slice){key.p, key.n}, row->page)->count++;
    if (row->has_visitor) {
        key_bucket(&key, TAG, KEY_UV, row->site->name, target->bucket, row->page);
        hll_add(
            store_sketch(&scene->expected, (struct slice){key.p, key.n}), row->visitor.bytes, 8);
    }
    if (row->has_address) {
        key_bucket(&key, TAG, KEY_IP, row->site->name, target->bucket, row->page);
        hll_add(
            store_sketch(&scene->expected, (struct slice){key.p, key.n}), row->address.bytes, 8);
    }
}

static void merge_rows(struct scene *scene, struct merge_counts *merge, size_t n)
{
    struct write_plan plan;
    write_plan_init(&plan, &scene->retention, &scene->state);
    for (size_t i = 0; i < n; i++) {
        struct row *row = &scene->rows[i];
        *row = random_row(&scene->dice);
        if (scene->hours > 0) {
            row->at_s = NOW_S - 2 * 86400 -
                        3600 * (int64_t)dice_below(&scene->dice, (uint64_t)scene->hours);
        }
        struct counted_for name = counted_for_page(row);
        write_plan_at(&plan, row->at_s);
        cr_assert(merge_counts_add(merge, KEY_PV, row, &name, 1, plan.targets, plan.n));
        for (unsigned t = 0; t < plan.n; t++) {
            expect(scene, row, &plan.targets[t]);
        }
    }
}

/* Ask what Redis has of old buckets.  Returns how many questions were asked. */
static size_t ask(struct scene *scene, struct merge_counts *merge)
{
    struct buffer out;
    buffer_init(&out);
    size_t n = merge_counts_write_questions(merge, TAG, NOW_S * 1000, &scene->state, &out);
    answer_all(&scene->is, merge, n, &out);
    size_t n_rest = merge_counts_write_rest(merge, LEVEL_HOUR, TAG, &out);
    answer_all(&scene->is, merge, n_rest, &out);
    size_t n_minutes = merge_counts_write_rest(merge, LEVEL_MINUTE, TAG, &out);
    answer_all(&scene->is, merge, n_minutes, &out);
    n_rest += n_minutes;
    buffer_release(&out);
    scene->n_rest += n_rest;
    return n + n_rest;
}

/* A fold of @n rows, whose old buckets are asked for or not. */
static void fold(struct scene *scene, struct merge_counts *merge, size_t n, bool asks)
{
    const struct known_keys known = {.expiries = &expiries, .sketches = &sketches};
    struct buffer out;
    struct commands commands;
    merge_counts_begin(merge, scene->rows);
    merge_rows(scene, merge, n);
    buffer_init(&out);
    scene->n_asked += asks ? ask(scene, merge) : 0;
    size_t n_commands = merge_counts_write(merge, TAG, NOW_S * 1000, &known, STATE, &out);
    if (n_commands > 0) {
        cr_assert(commands_read(&out, &commands) && commands.n == n_commands);
        for (size_t i = 0; i < commands.n; i++) {
            carry_out(&scene->is, &commands.commands[i]);
            scene->n_increments += command_is(&commands.commands[i], 0, "ZINCRBY");
            scene->n_set += command_is(&commands.commands[i], 0, "SET") ||
                            command_is(&commands.commands[i], 0, "MSET");
        }
        commands_release(&commands);
    }
    merge_counts_learn(merge, &expiries);
    buffer_release(&out);
}

static void check(struct scene *scene, uint64_t seed)
{
    cr_assert_eq(scene->is.n, scene->expected.n, "TALLYD_TEST_SEED=%" PRIu64, seed);
    for (size_t i = 0; i < scene->expected.n; i++) {
        const struct value *expected = &scene->expected.values[i];
        const struct value *is =
            store_find(&scene->is, slice_of(expected->key), slice_of(expected->field));
        cr_assert(is != NULL && is->count == expected->count, "TALLYD_TEST_SEED=%" PRIu64 ": %s %s",
            seed, expected->key, expected->field);
        cr_assert(expected->sketch == NULL ||
                      memcmp(is->sketch, expected->sketch, sizeof(*is->sketch)) == 0,
            "TALLYD_TEST_SEED=%" PRIu64 ": %s", seed, expected->key);
        /* Minutes and hours whose next coarser bucket is closed for readers. */
        bool old = strstr(expected->key, ":m20261120") == NULL;
        bool kept = strstr(expected->key, ":d2") != NULL || strstr(expected->key, ":M2") != NULL ||
                    strstr(expected->key, ":h20261119") != NULL ||
                    strstr(expected->key, ":h20261120") != NULL;
        cr_assert(!old || kept || is->expires, "%s", expected->key);
    }
}

Test(merge_counts_ask, agrees_with_counting_one_by_one)
{
    uint64_t seed = dice_seed();
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&caps, 1);
    for (int round = 0; round < 30; round++) {
        scene_init(&scene, seed + (uint64_t)round);
        known_hashes_forget(&expiries);
        for (int i = 0; i < 6; i++) {
            size_t n = (size_t)dice_below(&scene.dice, i % 2 == 0 ? 4 : 200);
            fold(&scene, merge, n, !dice_chance(&scene.dice, 300));
            check(&scene, seed);
        }
        store_clear(&scene.is);
        store_clear(&scene.expected);
    }
    merge_counts_free(merge);
    known_hashes_release(&expiries);
}

/* What a day does not have, its hours and minutes do not have.  What is there is seen all the same.
 */
Test(merge_counts_ask, hours_of_new_days_are_not_asked)
{
    uint64_t seed = dice_seed();
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&caps, 1);
    scene_init(&scene, seed);
    scene.retention.keep_s[LEVEL_MINUTE] = scene.retention.keep_s[LEVEL_HOUR] = 6000 * 86400;
    for (int i = 0; i < 12; i++) {
        size_t n_before = scene.n_rest;
        scene.hours = i < 10 ? 30 + 365 * 24 * i : 30; /* at the end most are there */
        fold(&scene, merge, 40, true);
        check(&scene, seed);
        size_t n = scene.n_rest - n_before;
        cr_expect(i < 5 || i > 9 || n < 20, "%zu questions, of 40 hours and minutes", n);
        cr_expect(i < 11 || n > 40, "%zu questions, where they are there", n);
    }
    store_clear(&scene.is);
    store_clear(&scene.expected);
    merge_counts_free(merge);
    known_hashes_forget(&expiries);
}

/* A pass may write to a bucket that is not closed for readers: there nothing may be set. */
Test(merge_counts_ask, asks_only_for_what_no_pass_changes)
{
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&caps, 1);
    scene_init(&scene, 1);
    for (int i = 0; i < 20; i++) {
        fold(&scene, merge, 200, true);
    }
    cr_expect_gt(scene.n_asked, 100u);
    cr_expect_gt(scene.n_increments, 20u, "of the last hour and the last day");
    cr_expect_gt(scene.n_set, 20u);
    struct row *row = &scene.rows[0];
    *row = random_row(&scene.dice);
    row->at_s = NOW_S - 3600; /* its hour is closed for writers, and not for readers */
    struct write_plan plan;
    struct buffer out;
    struct commands commands;
    struct counted_for name = counted_for_page(row);
    write_plan_init(&plan, &scene.retention, &scene.state);
    write_plan_at(&plan, row->at_s);
    cr_assert_eq(plan.n, 2u);
    merge_counts_begin(merge, row);
    cr_assert(merge_counts_add(merge, KEY_PV, row, &name, 1, plan.targets, plan.n));
    buffer_init(&out);
    cr_assert_eq(merge_counts_write_questions(merge, TAG, NOW_S * 1000, &scene.state, &out), 1u);
    cr_assert(commands_read(&out, &commands));
    cr_expect(command_is(&commands.commands[0], 0, "HMGET"));
    commands_release(&commands);
    buffer_release(&out);
    merge_counts_free(merge);
    store_clear(&scene.is);
    store_clear(&scene.expected);
    known_hashes_release(&expiries);
}

/* A score that is no whole number is added to, and so is an answer of another shape refused. */
Test(merge_counts_ask, answers_that_are_none)
{
    static struct scene scene;
    struct row row;
    struct write_plan plan;
    struct buffer out;
    const struct known_keys known = {.expiries = &expiries, .sketches = &sketches};
    struct reply odd[] = {{.type = REPLY_TEXT, .text = SLICE("1.5")}, {.type = REPLY_NIL}};
    struct reply of_day = {.type = REPLY_ARRAY, .items = odd, .n = 2};
    struct reply size = {.type = REPLY_INTEGER, .integer = 1};
    struct reply reply = {.type = REPLY_ARRAY, .items = odd, .n = 1};
    struct reply wrong = {.type = REPLY_INTEGER};
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    scene_init(&scene, 1);
    row = random_row(&scene.dice);
    row.at_s = NOW_S - 2 * 86400;
    struct counted_for name = counted_for_page(&row);
    write_plan_init(&plan, &scene.retention, &scene.state);
    write_plan_at(&plan, row.at_s);
    merge_counts_begin(merge, &row);
    cr_assert(merge_counts_add(merge, KEY_PV, &row, &name, 1, plan.targets, plan.n));
    buffer_init(&out);
    size_t n = merge_counts_write_questions(merge, TAG, NOW_S * 1000, &scene.state, &out);
    cr_assert_eq(n, 2u, "the day, and how many names it has");
    cr_expect_not(merge_counts_take(merge, &wrong));
    (void)merge_counts_write_questions(merge, TAG, NOW_S * 1000, &scene.state, &out);
    cr_assert(merge_counts_take(merge, &of_day));
    cr_assert(merge_counts_take(merge, &size));
    cr_expect_not(merge_counts_take(merge, &reply), "nothing is asked any more");
    for (int level = LEVEL_HOUR; level >= LEVEL_MINUTE; level--) {
        cr_assert_eq(merge_counts_write_rest(merge, (enum level)level, TAG, &out), 1u);
        cr_assert(merge_counts_take(merge, &reply));
    }
    cr_expect_not(merge_counts_take(merge, &reply), "nothing is asked any more");
    buffer_clear(&out, 0);
    (void)merge_counts_write(merge, TAG, NOW_S * 1000, &known, STATE, &out);
    cr_expect_not_null(memmem(out.p, out.n, "HINCRBY", 7));
    cr_expect_null(memmem(out.p, out.n, "ZADD", 4));
    buffer_release(&out);
    merge_counts_free(merge);
    known_hashes_release(&expiries);
}

/* fold.lua cannot take a command of 8,000 words. */
Test(merge_counts_ask, many_new_sketches_are_set_some_at_a_time)
{
    enum { PAGES = 2500 };
    static struct scene scene;
    static char names[PAGES][8];
    static struct row rows[PAGES];
    static struct reply nils[PAGES + 1] = {
        {.type = REPLY_NIL}}; /* the last: was one put together? */
    const struct known_keys known = {.expiries = &expiries, .sketches = &sketches};
    const struct reply none = {.type = REPLY_ARRAY, .items = nils, .n = PAGES + 1};
    const struct reply no_names = {.type = REPLY_INTEGER};
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct write_plan plan;
    struct buffer out;
    struct commands commands;
    size_t n_set = 0;
    scene_init(&scene, 1);
    write_plan_init(&plan, &scene.retention, &scene.state);
    write_plan_at(&plan, NOW_S - 2 * 86400);
    merge_counts_begin(merge, rows);
    for (size_t i = 0; i < PAGES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "/%zu", i);
        rows[i] = (struct row){.at_s = NOW_S - 2 * 86400,
            .site = row_site_of("shop"),
            .page = slice_of(names[i]),
            .page_hash = page_hash(SLICE("shop"), slice_of(names[i])),
            .has_visitor = true,
            .has_address = true};
        struct counted_for name = counted_for_page(&rows[i]);
        cr_assert(merge_counts_add(merge, KEY_PV, &rows[i], &name, 1, plan.targets, plan.n));
    }
    buffer_init(&out);
    (void)merge_counts_write_questions(merge, TAG, NOW_S * 1000, &scene.state, &out);
    cr_assert(merge_counts_take(merge, &none));
    cr_assert(merge_counts_take(merge, &no_names));
    cr_expect_eq(merge_counts_write_rest(merge, LEVEL_HOUR, TAG, &out), 0u);
    cr_expect_eq(merge_counts_write_rest(merge, LEVEL_MINUTE, TAG, &out), 0u);
    buffer_clear(&out, 0);
    (void)merge_counts_write(merge, TAG, NOW_S * 1000, &known, STATE, &out);
    cr_assert(commands_read(&out, &commands));
    for (size_t c = 0; c < commands.n; c++) {
        cr_expect_lt(commands.commands[c].n, 8000u);
        n_set += command_is(&commands.commands[c], 0, "MSET") ? commands.commands[c].n / 2 : 0;
    }
    cr_expect_eq(n_set, 2u * PAGES, "the day's, which has no expiry: %zu", n_set);
    commands_release(&commands);
    buffer_release(&out);
    merge_counts_free(merge);
    known_hashes_release(&expiries);
}

/* ---- minutes, by their hour ---- */

/* Ask of one page view of @page at @at_s what Redis has.  Was its minute asked? */
static bool ask_one(struct scene *scene, struct merge_counts *merge, const struct zone *zone,
    int64_t at_s, const char *page)
{
    static struct row row;
    struct write_plan plan;
    struct buffer out;
    row = random_row(&scene->dice);
    row.at_s = at_s;
    row.site = row_site_make("shop", zone, UINT64_MAX);
    row.page = slice_of(page);
    row.page_hash = page_hash(row.site->name, row.page);
    struct counted_for name = counted_for_page(&row);
    write_plan_init(&plan, &scene->retention, &scene->state);
    write_plan_in(&plan, zone);
    write_plan_at(&plan, row.at_s);
    merge_counts_begin(merge, &row);
    cr_assert(merge_counts_add(merge, KEY_PV, &row, &name, 1, plan.targets, plan.n));
    buffer_init(&out);
    size_t n = merge_counts_write_questions(merge, TAG, NOW_S * 1000, &scene->state, &out);
    bool asks = memmem(out.p, out.n, "HMGET", 5) != NULL;
    answer_all(&scene->is, merge, n, &out);
    for (int level = LEVEL_HOUR; level >= LEVEL_MINUTE; level--) {
        n = merge_counts_write_rest(merge, (enum level)level, TAG, &out);
        asks = asks || memmem(out.p, out.n, "HMGET", 5) != NULL;
        answer_all(&scene->is, merge, n, &out);
    }
    buffer_release(&out);
    return asks;
}

static void keep(struct scene *scene, int64_t minutes_s, int64_t hours_s)
{
    scene->retention.keep_s[LEVEL_MINUTE] = minutes_s;
    scene->retention.keep_s[LEVEL_HOUR] = hours_s;
}

/* The bucket at @at_s has @page. */
static void store_page(struct scene *scene, enum key_kind kind, struct slice site, enum level level,
    const struct zone *zone, int64_t at_s, const char *page)
{
    struct key key;
    key_bucket(&key, TAG, kind, site, bucket_at(zone, level, at_s), SLICE(""));
    store_get(&scene->is, (struct slice){key.p, key.n}, slice_of(page))->count = 1;
}

static void store_hour(struct scene *scene, const struct zone *zone, int64_t at_s, const char *page)
{
    store_page(scene, KEY_PV, SLICE("shop"), LEVEL_HOUR, zone, at_s, page);
    store_page(scene, KEY_PV, SLICE("shop"), LEVEL_DAY, zone, at_s, page);
}

Test(merge_counts_ask, what_an_hour_does_not_have_its_minutes_do_not_have)
{
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&caps, 1);
    int64_t at_s = NOW_S - 3 * 86400;
    scene_init(&scene, 1);
    keep(&scene, KEEP_FOREVER, KEEP_FOREVER);
    cr_expect_not(ask_one(&scene, merge, zone_utc(), at_s, "/b"), "nothing of the hour");
    store_hour(&scene, zone_utc(), at_s, "/a");
    cr_expect(ask_one(&scene, merge, zone_utc(), at_s, "/a"));
    cr_expect_not(ask_one(&scene, merge, zone_utc(), at_s, "/b"));
    store_page(&scene, KEY_PV, SLICE("shop"), LEVEL_DAY, zone_utc(), at_s, "\x04");
    store_page(&scene, KEY_PV, SLICE("shop"), LEVEL_HOUR, zone_utc(), at_s, "/c");
    cr_expect(ask_one(&scene, merge, zone_utc(), at_s, "/c"), "put together in the day");
    keep(&scene, 10 * 86400, KEEP_FOREVER);
    cr_expect_not(ask_one(&scene, merge, zone_utc(), at_s, "/b"));
    keep(&scene, 10 * 86400, 10 * 86400);
    cr_expect_not(ask_one(&scene, merge, zone_utc(), at_s, "/b"));
    keep(&scene, KEEP_FOREVER, 10 * 86400);
    cr_expect(ask_one(&scene, merge, zone_utc(), at_s, "/b"), "the hour goes before its minutes");
    keep(&scene, 20 * 86400, 10 * 86400);
    cr_expect(ask_one(&scene, merge, zone_utc(), at_s, "/b"));
    keep(&scene, 20 * 86400, 86400);
    cr_expect(ask_one(&scene, merge, zone_utc(), at_s, "/b"), "it has gone");
    store_clear(&scene.is);
    merge_counts_free(merge);
}

/* Of a day where a pass put names together its hours still have all, also where there is no cap any
 * more. */
Test(merge_counts_ask, a_day_with_a_cap_of_before_tells_nothing)
{
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    int64_t at_s = NOW_S - 3 * 86400;
    scene_init(&scene, 1);
    keep(&scene, KEEP_FOREVER, KEEP_FOREVER);
    store_hour(&scene, zone_utc(), at_s, "/a");
    cr_expect_not(ask_one(&scene, merge, zone_utc(), at_s, "/c"));
    store_page(&scene, KEY_PV, SLICE("shop"), LEVEL_DAY, zone_utc(), at_s, "\x04");
    store_page(&scene, KEY_PV, SLICE("shop"), LEVEL_HOUR, zone_utc(), at_s, "/c");
    cr_expect(ask_one(&scene, merge, zone_utc(), at_s, "/c"));
    store_clear(&scene.is);
    merge_counts_free(merge);
}

/* The past of a zone may change, and its hours begin at another minute. */
Test(merge_counts_ask, minutes_of_a_zone_are_asked)
{
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&caps, 1);
    const char *fault;
    struct zone *zone = zone_make("Asia/Kolkata", 19800, NULL, 0, false, 0, &fault);
    int64_t at_s = NOW_S - 3 * 86400;
    cr_assert_not_null(zone);
    scene_init(&scene, 1);
    keep(&scene, KEEP_FOREVER, KEEP_FOREVER);
    cr_expect(ask_one(&scene, merge, zone, at_s, "/b"));
    store_hour(&scene, zone, at_s, "/a");
    cr_expect(ask_one(&scene, merge, zone, at_s, "/b"));
    store_clear(&scene.is);
    zone_free(zone);
    merge_counts_free(merge);
}

/* ---- caps ---- */

/* Count the @n_come names in @come of one event of an old hour; the event. */
static const struct row *count_names(struct scene *scene, struct merge_counts *merge,
    enum key_kind kind, const char *const *come, size_t n_come)
{
    static struct row row;
    struct write_plan plan;
    scene_init(scene, 1);
    row = random_row(&scene->dice);
    row.at_s = NOW_S - 3 * 86400;
    write_plan_init(&plan, &scene->retention, &scene->state);
    write_plan_at(&plan, row.at_s);
    merge_counts_begin(merge, &row);
    for (size_t i = 0; i < n_come; i++) {
        struct slice text = slice_of(come[i]);
        struct counted_for name = {text, page_hash(row.site->name, text), false, false};
        cr_assert(merge_counts_add(merge, kind, &row, &name, 1, plan.targets, plan.n));
    }
    return &row;
}

/* Does an hour that has the @n_had names in @had exceed with those in @come?  @of_day: its day has
 * that name, too; NULL: none. */
static bool hour_exceeds(const char *const *had, size_t n_had, const char *const *come,
    size_t n_come, enum key_kind kind, const char *of_day)
{
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&caps, 1);
    const struct row *row = count_names(&scene, merge, kind, come, n_come);
    for (size_t i = 0; i < n_had; i++) {
        store_page(&scene, kind, row->site->name, LEVEL_HOUR, zone_utc(), row->at_s, had[i]);
        store_page(&scene, kind, row->site->name, LEVEL_DAY, zone_utc(), row->at_s, had[i]);
    }
    if (of_day != NULL) {
        store_page(&scene, kind, row->site->name, LEVEL_DAY, zone_utc(), row->at_s, of_day);
    }
    (void)ask(&scene, merge);
    bool is = merge_counts_exceeds(merge);
    store_clear(&scene.is);
    store_clear(&scene.expected);
    merge_counts_free(merge);
    return is;
}

static bool exceeds(const char *const *had, size_t n_had, const char *const *come, size_t n_come,
    enum key_kind kind)
{
    bool is = hour_exceeds(had, n_had, come, n_come, kind, NULL);
    cr_assert_eq(hour_exceeds(had, n_had, come, n_come, kind, "/of the day"), is);
    cr_assert_eq(hour_exceeds(had, n_had, come, n_come, kind, "\x04"), is, "put together there");
    return is;
}
#define LIST(...)                                                                                  \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

Test(merge_counts_ask, whether_an_hour_can_take_the_names)
{
    cr_expect_not(exceeds(LIST("/a", "/b"), LIST("/c", "/d"), KEY_PV));
    cr_expect(exceeds(LIST("/a", "/b"), LIST("/c", "/d", "/e"), KEY_PV));
    cr_expect_not(exceeds(LIST("/a", "/b"), LIST("/a", "/c", "/b", "/d"), KEY_VV));
    cr_expect_not(
        exceeds(LIST("/a", "/b", "/c", "/d", "/e"), LIST("/a", "/e"), KEY_PV), "no new one");
    cr_expect(exceeds(LIST("/a", "\x04"), LIST("/b"), KEY_PV), "one was put together");
    cr_expect_not(exceeds(LIST("/a", "\x04"), LIST("/a"), KEY_PV));
    cr_expect(exceeds(LIST("/a", "/b"), LIST("\x02sx", "\x02sy"), KEY_PV), "three values at most");
    cr_expect_not(exceeds(LIST("/a"), LIST("\x02sx", "\x02sy"), KEY_PV));
    cr_expect_not(exceeds(NULL, 0, LIST("/a", "/b", "/c", "/d"), KEY_PV), "nothing was there");
    cr_expect(exceeds(NULL, 0, LIST("/a", "/b", "/c", "/d", "/e"), KEY_PV));
    cr_expect_not(exceeds(LIST("/a", "/b", "/c", "/d"),
                      LIST("\x03s", "\x05"
                                    "e"),
                      KEY_VV),
        "these have no cap");
}

/* Without caps: of names that are new to a day, are its hours asked? */
static bool are_hours_asked(const char *const *come, size_t n_come)
{
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct buffer out;
    (void)count_names(&scene, merge, KEY_PV, come, n_come);
    buffer_init(&out);
    size_t n = merge_counts_write_questions(merge, TAG, NOW_S * 1000, &scene.state, &out);
    answer_all(&scene.is, merge, n, &out);
    n = merge_counts_write_rest(merge, LEVEL_HOUR, TAG, &out);
    buffer_release(&out);
    store_clear(&scene.is);
    merge_counts_free(merge);
    return n > 0;
}

/* Of more classes than the questions have room for nobody knows whether they fit, and whether a
 * day's names were put together. */
Test(merge_counts_ask, many_classes)
{
    static char texts[30][12];
    const char *come[30];
    for (int i = 0; i < 30; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "\x02p%d=v", i);
        come[i] = texts[i];
    }
    cr_expect(exceeds(NULL, 0, come, 30, KEY_PV));
    cr_expect_not(exceeds(NULL, 0, come, 3, KEY_PV));
    cr_expect(are_hours_asked(come, 30), "some may have been put together in the day");
    cr_expect_not(are_hours_asked(come, 3));
}
