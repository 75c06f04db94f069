#include "storage/merge/merge_counts.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/commands.h"
#include "tests/lib/dice.h"
#include "tests/lib/hll_add.h"
#include "tests/lib/row_sites.h"
#include "tests/lib/text_lines.h"

TestSuite(merge_counts, .timeout = 60);

static const struct storage_config no_caps;
static enum key_kind counted = KEY_PV; /* views, or visits */

#define TAG   "7"
#define NOW_S INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */

/* ---- rows ---- */

static struct row row_of(
    const char *site, const char *page, int64_t at_s, unsigned visitor, unsigned address)
{
    struct row row = {.at_s = at_s,
        .site = row_site_of(site),
        .page = slice_of(page),
        .page_hash = page_hash(slice_of(site), slice_of(page)),
        .has_visitor = visitor != 0,
        .has_address = address != 0};
    memcpy(row.visitor.bytes, &visitor, sizeof(visitor));
    memset(row.visitor.bytes + 8, 0xee, 8); /* not for sketches */
    memcpy(row.address.bytes, &address, sizeof(address));
    return row;
}

static void plan_make(struct write_plan *plan)
{
    static const struct retention retention = {
        .keep_s = {2 * 86400, 62 * 86400, 1100 * 86400, KEEP_FOREVER}};
    struct rollup_state state = rollup_state_initial(NOW_S);
    state.readers_s[LEVEL_HOUR] -= 3600; /* the last hour is closing */
    write_plan_init(plan, &retention, &state);
}

/* Count @row for its page, or for the whole site. */
static bool count_row(struct merge_counts *merge, const struct row *row, bool whole_site,
    const struct write_plan *plan)
{
    struct counted_for name = whole_site ? counted_for_site(row) : counted_for_page(row);
    return merge_counts_add(merge, counted, row, &name, 1, plan->targets, plan->n);
}

/* ---- what was written, as lines ---- */

static void hex(struct slice bytes, char *text)
{
    for (size_t i = 0; i < bytes.n; i++) {
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)bytes.p[i]);
    }
}

static const char *read_command(const struct command *c, struct text_lines *ret)
{
    struct slice key = c->n > 1 ? c->words[1] : SLICE("");
    if (command_is(c, 0, "HINCRBY") && c->n == 4) {
        text_lines_add(ret, "%.*s: H %.*s + %lld", (int)key.n, key.p, (int)c->words[2].n,
            c->words[2].p, command_number(c, 3));
    } else if (command_is(c, 0, "ZINCRBY") && c->n == 4) {
        text_lines_add(ret, "%.*s: Z %.*s + %lld", (int)key.n, key.p, (int)c->words[3].n,
            c->words[3].p, command_number(c, 2));
    } else if (command_is(c, 0, "PEXPIREAT") && c->n == 4 && command_is(c, 3, "NX")) {
        text_lines_add(ret, "%.*s expires %lld", (int)key.n, key.p, command_number(c, 2));
    } else if (command_is(c, 0, "PFADD") && c->n > 2) {
        for (size_t i = 2; i < c->n; i++) {
            char text[17] = "";
            if (c->words[i].n != 8) {
                return "a member of a sketch is not 8 bytes";
            }
            hex(c->words[i], text);
            text_lines_add(ret, "%.*s has %s", (int)key.n, key.p, text);
        }
    } else {
        return "a command that is none of these";
    }
    return NULL;
}

/* A bucket, or a page in it, that comes twice; a visitor of a page may. */
static const char *find_twice(struct text_lines *lines)
{
    text_lines_sort(lines);
    for (size_t i = 1; i < lines->n; i++) {
        if (strcmp(lines->lines[i - 1], lines->lines[i]) == 0 &&
            strstr(lines->lines[i], " has ") == NULL) {
            return lines->lines[i];
        }
    }
    return NULL;
}

static struct known_hashes no_expiries;
static struct known_sketches no_sketches;
static const struct known_keys none = {.expiries = &no_expiries, .sketches = &no_sketches};

/* The commands as lines.  A fault, or NULL. */
static const char *written(struct merge_counts *merge, struct text_lines *ret)
{
    struct buffer out;
    struct commands commands;
    const char *fault = NULL;
    buffer_init(&out);
    size_t n = merge_counts_write(merge, TAG, NOW_S * 1000, &none, SLICE("state"), &out);
    if (!commands_read(&out, &commands) || commands.n != n) {
        fault = "no commands, or another number of them";
    }
    for (size_t i = 0; fault == NULL && i < n; i++) {
        fault = read_command(&commands.commands[i], ret);
    }
    commands_release(&commands);
    buffer_release(&out);
    return fault;
}

/* ---- the model: every row and target for itself ---- */

struct view { /* of a page in a bucket */
    struct write_target target;
    struct slice site, page;
    const struct row *row;
};

static void print_bucket(
    char *text, size_t size, const char *kind, struct slice site, struct bucket bucket)
{
    time_t at = (time_t)bucket.start_s;
    struct tm tm;
    char start[16];
    gmtime_r(&at, &tm);
    strftime(start, sizeof(start), "%Y%m%d%H%M", &tm);
    snprintf(text, size, "t:{" TAG "}:%s:%.*s:%c%s", kind, (int)site.n, site.p,
        "mhdM"[bucket.level], start);
}

static void expect_member(
    struct text_lines *ret, const struct view *view, const char *kind, const uint8_t *bytes)
{
    char key[128];
    char text[17] = "";
    print_bucket(key, sizeof(key), kind, view->site, view->target.bucket);
    hex((struct slice){(const char *)bytes, 8}, text);
    text_lines_add(ret, "%s:%.*s has %s", key, (int)view->page.n, view->page.p, text);
    if (view->target.expire_ms > 0) {
        text_lines_add(ret, "%s:%.*s expires %" PRId64, key, (int)view->page.n, view->page.p,
            view->target.expire_ms);
    }
}

static void expect(const struct view *views, size_t n, struct text_lines *ret)
{
    for (size_t i = 0; i < n; i++) {
        const struct view *view = &views[i];
        char pv[128];
        if (view->target.expire_ms > 0 && view->target.expire_ms <= NOW_S * 1000) {
            continue; /* its time is over */
        }
        unsigned same = 0;
        print_bucket(pv, sizeof(pv), "pv", view->site, view->target.bucket);
        for (size_t k = 0; k < n; k++) {
            same += slice_equal(views[k].site, view->site) &&
                    slice_equal(views[k].page, view->page) &&
                    views[k].target.bucket.level == view->target.bucket.level &&
                    views[k].target.bucket.start_s == view->target.bucket.start_s;
        }
        if (view->target.expire_ms > 0) {
            text_lines_add(ret, "%s expires %" PRId64, pv, view->target.expire_ms);
        }
        text_lines_add(ret, "%s: %s %.*s + %u", pv,
            view->target.bucket.level == LEVEL_MINUTE ? "H" : "Z", (int)view->page.n, view->page.p,
            same);
        if (view->row->has_visitor) {
            expect_member(ret, view, "uv", view->row->visitor.bytes);
        }
        if (view->row->has_address) {
            expect_member(ret, view, "ip", view->row->address.bytes);
        }
    }
    text_lines_unite(ret);
}

/* ---- by hand ---- */

Test(merge_counts, nothing)
{
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct text_lines lines = {0};
    cr_assert_not_null(merge);
    merge_counts_begin(merge, NULL);
    cr_expect_null(written(merge, &lines));
    cr_expect_eq(lines.n, 0u);
    merge_counts_free(merge);
    merge_counts_free(NULL);
    text_lines_release(&lines);
}

/* The commands themselves, once. */
Test(merge_counts, commands_of_a_small_fold)
{
    const struct row rows[] = {row_of("shop", "/a", NOW_S, 1, 2),
        row_of("shop", "/a", NOW_S + 1, 0, 2), row_of("shop", "/b", NOW_S, 0, 0)};
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct buffer out;
    struct write_plan plan;
    plan_make(&plan);
    buffer_init(&out);
    merge_counts_begin(merge, rows);
    for (size_t i = 0; i < 3; i++) {
        write_plan_at(&plan, rows[i].at_s);
        cr_assert(count_row(merge, &rows[i], false, &plan));
    }
    cr_expect_eq(merge_counts_write(merge, TAG, NOW_S * 1000, &none, SLICE("state"), &out), 4u);
    cr_expect(slice_equal((struct slice){out.p, out.n},
                  SLICE("*4\r\n$7\r\nHINCRBY\r\n$27\r\nt:{7}:pv:shop:m202611201517\r\n$2\r\n/"
                        "a\r\n$1\r\n2\r\n"
                        "*4\r\n$7\r\nHINCRBY\r\n$27\r\nt:{7}:pv:shop:m202611201517\r\n$2\r\n/"
                        "b\r\n$1\r\n1\r\n"
                        "*3\r\n$5\r\nPFADD\r\n$30\r\nt:{7}:uv:shop:m202611201517:/a\r\n"
                        "$8\r\n\1\0\0\0\0\0\0\0\r\n"
                        "*3\r\n$5\r\nPFADD\r\n$30\r\nt:{7}:ip:shop:m202611201517:/a\r\n"
                        "$8\r\n\2\0\0\0\0\0\0\0\r\n")), /* the same one again is left out */
        "%.*s", (int)out.n, out.p);
    buffer_release(&out);
    merge_counts_free(merge);
}

/* Visits have a key of their own, and no sketches. */
Test(merge_counts, visits)
{
    const struct row row = row_of("shop", "/a", NOW_S, 1, 2);
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    counted = KEY_VV;
    struct text_lines lines = {0};
    struct write_plan plan;
    plan_make(&plan);
    write_plan_at(&plan, NOW_S);
    merge_counts_begin(merge, &row);
    cr_assert(count_row(merge, &row, false, &plan));
    cr_assert(count_row(merge, &row, true, &plan));
    cr_expect_null(written(merge, &lines));
    cr_assert_eq(lines.n, 2u);
    cr_expect_str_eq(lines.lines[0], "t:{7}:vv:shop:m202611201517: H /a + 1");
    cr_expect_str_eq(lines.lines[1], "t:{7}:vv:shop:m202611201517: H  + 1");
    text_lines_release(&lines);
    merge_counts_free(merge);
}

/* Sums of a site lie beside its visits, and are added up. */
Test(merge_counts, sums)
{
    const struct row rows[] = {
        row_of("shop", "/a", NOW_S, 1, 2), row_of("blog", "/a", NOW_S, 1, 2)};
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    counted = KEY_VV;
    struct text_lines lines = {0};
    struct write_plan plan;
    plan_make(&plan);
    write_plan_at(&plan, NOW_S);
    for (unsigned i = 0; i < 3; i++) {
        struct merge_sum seconds = {SLICE("seconds"), i == 2 ? 7 : UINT32_MAX};
        cr_assert(merge_counts_add_sum(merge, &rows[i == 2], &seconds, plan.targets, plan.n));
    }
    cr_expect_null(written(merge, &lines));
    cr_assert_eq(lines.n, 2u);
    cr_expect_str_eq(lines.lines[0], "t:{7}:vv:shop:m202611201517: H seconds + 8589934590");
    cr_expect_str_eq(lines.lines[1], "t:{7}:vv:blog:m202611201517: H seconds + 7");
    text_lines_release(&lines);
    merge_counts_free(merge);
}

static size_t commands_at(
    struct merge_counts *merge, struct known_hashes *expiries, struct slice state, int64_t now_ms)
{
    const struct known_keys known = {.expiries = expiries, .sketches = &no_sketches};
    struct buffer out;
    buffer_init(&out);
    size_t n = merge_counts_write(merge, TAG, now_ms, &known, state, &out);
    buffer_release(&out);
    return n;
}

static size_t commands_with(
    struct merge_counts *merge, struct known_hashes *expiries, struct slice state)
{
    return commands_at(merge, expiries, state, NOW_S * 1000);
}

/* What is written late gets its expiry once, as long as no rollup may have made a key anew. */
static void check_expiries(const char *site, const char *page)
{
    const struct row row = row_of(site, page, NOW_S - 40 * 86400, 1, 2);
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct known_hashes known = {0};
    struct write_plan plan;
    plan_make(&plan);
    write_plan_at(&plan, row.at_s);
    merge_counts_begin(merge, &row);
    cr_assert(count_row(merge, &row, false, &plan));
    size_t first = commands_with(merge, &known, SLICE("state"));
    cr_expect_eq(commands_with(merge, &known, SLICE("state")), first, "it was not carried out");
    merge_counts_learn(merge, &known);
    size_t again = commands_with(merge, &known, SLICE("state"));
    cr_expect_geq(first, again + 3, "%zu, then %zu", first, again);
    cr_expect_eq(commands_with(merge, &known, SLICE("another")), first);
    known_hashes_forget(&known);
    cr_expect_eq(commands_with(merge, &known, SLICE("state")), first);
    known_hashes_release(&known);
    merge_counts_free(merge);
}

Test(merge_counts, an_expiry_is_set_once)
{
    char site[EVENT_SITE_MAX + 1] = "";
    char page[EVENT_PAGE_MAX + 1] = "";
    check_expiries("shop", "/a");
    memset(site, 's', EVENT_SITE_MAX);
    memset(page, 'p', EVENT_PAGE_MAX);
    check_expiries(site, page);
    check_expiries("s", page);
}

/* A key that may be gone by then would be made anew, and live for ever. */
Test(merge_counts, an_expiry_is_set_again_shortly_before_its_time)
{
    const struct row row = row_of("shop", "/a", NOW_S - 40 * 86400, 1, 2);
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct known_hashes known = {0};
    struct write_plan plan;
    int64_t ends_ms = 0;
    plan_make(&plan);
    write_plan_at(&plan, row.at_s);
    merge_counts_begin(merge, &row);
    cr_assert(count_row(merge, &row, false, &plan));
    for (unsigned t = 0; t < plan.n; t++) {
        bool of_hour = plan.targets[t].bucket.level == LEVEL_HOUR;
        ends_ms = of_hour ? plan.targets[t].expire_ms : ends_ms;
    }
    cr_assert_gt(ends_ms, NOW_S * 1000);
    (void)commands_with(merge, &known, SLICE("state"));
    merge_counts_learn(merge, &known);
    size_t once = commands_with(merge, &known, SLICE("state"));
    cr_expect_eq(commands_at(merge, &known, SLICE("state"), ends_ms - 60000), once);
    cr_expect_eq(commands_at(merge, &known, SLICE("state"), ends_ms - 59999), once + 3,
        "the counters, visitors and addresses of the hour");
    known_hashes_release(&known);
    merge_counts_free(merge);
}

/* ---- property ---- */

#define ROWS  300
#define VIEWS (ROWS * 2 * LEVELS)

struct scene {
    struct dice dice;
    struct row rows[ROWS];
    struct view views[VIEWS];
    size_t n_views;
    uint64_t hash_mask; /* few bits: hashes collide */
};

static struct row random_row(struct dice *dice)
{
    static const char *const sites[] = {"shop", "blog", "s", "shop2"};
    static const char *const pages[] = {
        "/", "/a", "/b", "/a:b", "shop", "h202611201500", "/\xc3\xbc"};
    static const int64_t ages_s[] = {0, 30, 3600, 7200, 86400, 40 * 86400};
    int64_t at_s = NOW_S - ages_s[dice_below(dice, 6)] - dice_below(dice, 100);
    return row_of(sites[dice_below(dice, 4)], pages[dice_below(dice, 7)], at_s,
        (unsigned)dice_below(dice, 12), (unsigned)dice_below(dice, 6));
}

static void add_random(struct scene *scene, struct merge_counts *merge, size_t n_rows)
{
    struct write_plan plan;
    plan_make(&plan);
    scene->n_views = 0;
    for (size_t i = 0; i < n_rows; i++) {
        struct row *row = &scene->rows[i];
        *row = random_row(&scene->dice);
        row->page_hash &= scene->hash_mask;
        row->site = row_site_make(row->site->name.p, zone_utc(), scene->hash_mask);
        write_plan_at(&plan, row->at_s);
        for (int whole = 0; whole < 2; whole++) {
            if (dice_chance(&scene->dice, 300)) {
                continue; /* it lies in another partition */
            }
            cr_assert(count_row(merge, row, whole == 1, &plan));
            for (unsigned t = 0; t < plan.n; t++) {
                scene->views[scene->n_views++] = (struct view){
                    plan.targets[t], row->site->name, whole == 1 ? SLICE("") : row->page, row};
            }
        }
    }
}

static void print_target(void *data, struct slice site, const struct write_target *target)
{
    char pv[128];
    print_bucket(pv, sizeof(pv), "pv", site, target->bucket);
    text_lines_add(data, "%s %d %" PRId64, pv, target->announce, target->parent.start_s);
}

/* Each bucket is shown, once. */
static void check_targets(
    const struct scene *scene, const struct merge_counts *merge, uint64_t seed)
{
    struct text_lines shown = {0};
    struct text_lines expected = {0};
    merge_counts_targets(merge, print_target, &shown);
    for (size_t i = 0; i < scene->n_views; i++) {
        print_target(&expected, scene->views[i].site, &scene->views[i].target);
    }
    text_lines_sort(&shown);
    text_lines_unite(&expected);
    cr_assert_null(text_lines_difference(&shown, &expected), "TALLYD_TEST_SEED=%" PRIu64 ": %s",
        seed, text_lines_difference(&shown, &expected));
    text_lines_release(&shown);
    text_lines_release(&expected);
}

Test(merge_counts, agrees_with_counting_one_by_one)
{
    uint64_t seed = dice_seed();
    static struct scene scene;
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct text_lines found = {0};
    struct text_lines expected = {0};
    scene.dice = dice_make(seed);
    for (int round = 0; round < 60; round++) {
        merge_counts_begin(merge, scene.rows);
        scene.hash_mask = round % 2 == 0 ? UINT64_MAX : 3;
        add_random(&scene, merge, (size_t)dice_below(&scene.dice, round % 3 == 0 ? 5 : ROWS));
        const char *fault = written(merge, &found);
        cr_assert_null(fault, "TALLYD_TEST_SEED=%" PRIu64 ", round %d: %s", seed, round, fault);
        cr_assert_null(
            find_twice(&found), "TALLYD_TEST_SEED=%" PRIu64 ": %s twice", seed, find_twice(&found));
        text_lines_unite(&found);
        expect(scene.views, scene.n_views, &expected);
        cr_assert_null(text_lines_difference(&found, &expected),
            "TALLYD_TEST_SEED=%" PRIu64 ", round %d: %s", seed, round,
            text_lines_difference(&found, &expected));
        check_targets(&scene, merge, seed);
        text_lines_clear(&found);
        text_lines_clear(&expected);
    }
    text_lines_release(&found);
    text_lines_release(&expected);
    merge_counts_free(merge);
}

/* More than fit into one command. */
Test(merge_counts, many_visitors_of_one_page)
{
    enum { N = 10000 };
    struct row *rows = calloc(N, sizeof(*rows));
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct text_lines lines = {0};
    struct write_plan plan;
    plan_make(&plan);
    write_plan_at(&plan, NOW_S);
    merge_counts_begin(merge, rows);
    for (unsigned i = 0; i < N; i++) {
        rows[i] = row_of("shop", "/", NOW_S, i + 1, 1);
        cr_assert(count_row(merge, &rows[i], false, &plan));
    }
    cr_expect_null(written(merge, &lines));
    text_lines_unite(&lines);
    cr_expect_eq(lines.n, 1u + N + 1);
    cr_expect_str_eq(lines.lines[1], "t:{7}:pv:shop:m202611201517: H / + 10000");
    text_lines_release(&lines);
    merge_counts_free(merge);
    free(rows);
}

/* ---- what counters are known to have ---- */

/* Count a view of each of @pages at @at_s, and put the commands on counters into @ret.  Those for
 * increments get these answers; NULL: the commands were not carried out. */
static void count_pages(struct known_counts *counts, int64_t at_s, const char *const pages[],
    const int64_t answers[], struct text_lines *ret)
{
    const struct known_keys known = {
        .expiries = &no_expiries, .sketches = &no_sketches, .counts = counts};
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    counted = KEY_VV;
    struct row rows[8];
    struct reply replies[8] = {{.type = REPLY_INTEGER}};
    struct write_plan plan;
    struct buffer out;
    struct commands commands;
    plan_make(&plan);
    write_plan_at(&plan, at_s);
    merge_counts_begin(merge, rows);
    for (size_t i = 0; pages[i] != NULL; i++) {
        rows[i] = row_of("shop", pages[i], at_s, 0, 0);
        cr_assert(count_row(merge, &rows[i], false, &plan));
    }
    buffer_init(&out);
    size_t n = merge_counts_write(merge, TAG, NOW_S * 1000, &known, SLICE("state"), &out);
    cr_assert(commands_read(&out, &commands) && commands.n == n && n <= 8);
    for (size_t c = 0, a = 0; c < n; c++) {
        const struct command *command = &commands.commands[c];
        for (size_t i = 2; command_is(command, 0, "HSET") && i < command->n; i += 2) {
            text_lines_add(ret, "%.*s = %lld", (int)command->words[i].n, command->words[i].p,
                command_number(command, i + 1));
        }
        if (command_is(command, 0, "HINCRBY")) {
            text_lines_add(ret, "%.*s + %lld", (int)command->words[2].n, command->words[2].p,
                command_number(command, 3));
            replies[c] = (struct reply){
                .type = REPLY_INTEGER, .integer = answers == NULL ? 0 : answers[a++]};
        }
    }
    if (answers != NULL) {
        merge_counts_learn_values(merge, TAG, &known, replies);
    }
    commands_release(&commands);
    buffer_release(&out);
    merge_counts_free(merge);
}

static void expect_counted(struct known_counts *counts, int64_t at_s, const char *const pages[],
    const int64_t answers[], const char *expected)
{
    struct text_lines lines = {0};
    char text[256] = "";
    count_pages(counts, at_s, pages, answers, &lines);
    for (size_t i = 0; i < lines.n; i++) {
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof(text) - n, "%s%s", i == 0 ? "" : ", ", lines.lines[i]);
    }
    cr_expect_str_eq(text, expected);
    text_lines_release(&lines);
}

/* A counter's first command is an increment, whose answer tells what the next one sets. */
Test(merge_counts, counters_that_are_known_are_set)
{
    static const char *const a[] = {"/a", "/a", NULL};
    static const char *const ab[] = {"/a", "/b", NULL};
    static const char *const bca[] = {"/b", "/c", "/a", NULL};
    static struct known_counts counts;
    known_counts_init(&counts, 1);
    expect_counted(&counts, NOW_S, a, NULL, "/a + 2");
    expect_counted(&counts, NOW_S, a, (int64_t[]){7}, "/a + 2");
    expect_counted(&counts, NOW_S, ab, NULL, "/a = 8, /b + 1");
    expect_counted(&counts, NOW_S, ab, (int64_t[]){1}, "/a = 8, /b + 1");
    expect_counted(&counts, NOW_S, bca, (int64_t[]){5}, "/b = 2, /a = 9, /c + 1");
    expect_counted(&counts, NOW_S, bca, (int64_t[]){0}, "/b = 3, /c = 6, /a = 10");
    expect_counted(&counts, NOW_S + 60, a, NULL, "/a + 2"); /* another minute */
    expect_counted(NULL, NOW_S, a, NULL, "/a + 2");
    known_counts_release(&counts);
}

/* An error is no value, and an old minute's key may expire. */
Test(merge_counts, counters_that_stay_unknown)
{
    static const char *const a[] = {"/a", NULL};
    static struct known_counts counts;
    known_counts_init(&counts, 1);
    expect_counted(&counts, NOW_S, a, (int64_t[]){0}, "/a + 1");
    expect_counted(&counts, NOW_S, a, (int64_t[]){1}, "/a + 1");
    expect_counted(&counts, NOW_S, a, NULL, "/a = 2");
    expect_counted(&counts, NOW_S - 660, a, (int64_t[]){1}, "/a + 1");
    expect_counted(&counts, NOW_S - 660, a, (int64_t[]){2}, "/a + 1");
    known_counts_release(&counts);
}

/* fold.lua takes no command of more words, and each counter is written once all the same. */
Test(merge_counts, many_counters_are_set_some_at_a_time)
{
    enum { PAGES = 4500 };
    static struct known_counts counts;
    static struct row rows[PAGES];
    static char names[PAGES][8];
    const struct known_keys known = {
        .expiries = &no_expiries, .sketches = &no_sketches, .counts = &counts};
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    counted = KEY_VV;
    struct write_plan plan;
    size_t n_set = 0;
    plan_make(&plan);
    write_plan_at(&plan, NOW_S);
    known_counts_init(&counts, 1);
    merge_counts_begin(merge, rows);
    for (unsigned i = 0; i < PAGES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "/%u", i);
        rows[i] = row_of("shop", names[i], NOW_S, 0, 0);
        cr_assert(count_row(merge, &rows[i], false, &plan));
    }
    struct buffer out;
    struct commands commands;
    struct reply *replies = calloc(PAGES, sizeof(*replies));
    cr_assert_not_null(replies);
    buffer_init(&out);
    cr_assert_eq(merge_counts_write(merge, TAG, NOW_S * 1000, &known, SLICE("s"), &out), PAGES);
    for (size_t i = 0; i < PAGES; i++) {
        replies[i] = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    }
    merge_counts_learn_values(merge, TAG, &known, replies);
    buffer_clear(&out, 0);
    cr_expect_eq(merge_counts_write(merge, TAG, NOW_S * 1000, &known, SLICE("s"), &out), 3u);
    cr_assert(commands_read(&out, &commands));
    for (size_t c = 0; c < commands.n; c++) {
        cr_expect(command_is(&commands.commands[c], 0, "HSET"));
        cr_expect_lt(commands.commands[c].n, 8000u);
        n_set += (commands.commands[c].n - 2) / 2;
    }
    cr_expect_eq(n_set, (size_t)PAGES);
    commands_release(&commands);
    buffer_release(&out);
    free(replies);
    merge_counts_free(merge);
    known_counts_release(&counts);
}

/* ---- elements that a sketch is known to hold ---- */

#define CROWD 3000

/* Visitors [from, to) look at a page at @at_s.  Returns how many of them go to its sketch; the
 * sketch's elements are added to @sketch. */
static size_t elements_written(struct known_sketches *sketches, int64_t at_s, unsigned from,
    unsigned to, bool carried_out, struct hll *sketch)
{
    static struct row rows[CROWD];
    const struct known_keys known = {.expiries = &no_expiries, .sketches = sketches};
    struct merge_counts *merge = merge_counts_new(&no_caps, 1);
    struct write_plan plan;
    struct buffer out;
    struct commands commands;
    size_t n = 0;
    plan_make(&plan);
    write_plan_at(&plan, at_s);
    merge_counts_begin(merge, rows);
    for (unsigned i = from; i < to; i++) {
        rows[i] = row_of("shop", "/a", at_s, 1 + i, 0);
        cr_assert(count_row(merge, &rows[i], false, &plan));
    }
    for (int twice = 0; twice < 2; twice++) { /* the second time for fold.lua, say */
        n = 0;
        buffer_init(&out);
        size_t n_commands =
            merge_counts_write(merge, TAG, NOW_S * 1000, &known, SLICE("state"), &out);
        cr_assert(commands_read(&out, &commands) && commands.n == n_commands);
        for (size_t c = 0; c < commands.n; c++) {
            const struct command *command = &commands.commands[c];
            for (size_t i = 2; command_is(command, 0, "PFADD") && i < command->n; i++, n++) {
                hll_add(sketch, command->words[i].p, command->words[i].n);
            }
        }
        commands_release(&commands);
        buffer_release(&out);
    }
    memset(rows, 0xff, sizeof(rows)); /* what was carried out is learnt when rows may be gone */
    if (carried_out) {
        merge_counts_learn_elements(merge, sketches);
    }
    merge_counts_free(merge);
    return n;
}

/* The sketch's registers are those of all that came, whatever was left out. */
Test(merge_counts, leaves_out_what_raises_no_register)
{
    struct known_sketches known = {0};
    struct hll is;
    struct hll all;
    struct hll other;
    hll_clear(&is);
    hll_clear(&all);
    hll_clear(&other);
    for (unsigned i = 0; i < CROWD; i++) {
        struct row row = row_of("shop", "/a", NOW_S, 1 + i, 0);
        hll_add(&all, row.visitor.bytes, 8);
    }
    cr_expect_eq(elements_written(&known, NOW_S, 0, 1000, false, &is), 1000u);
    cr_expect_eq(elements_written(&known, NOW_S, 0, 1000, true, &is), 1000u, "it was void");
    cr_expect_eq(elements_written(&known, NOW_S, 0, 1000, true, &is), 0u);
    cr_expect_eq(elements_written(&known, NOW_S, 5, 6, true, &is), 0u, "few go by it, too");
    size_t n = elements_written(&known, NOW_S, 500, CROWD, true, &is);
    cr_expect(n > 1500 && n < 2000, "%zu", n);
    cr_expect_arr_eq(is.registers, all.registers, sizeof(all.registers));
    cr_expect_eq(elements_written(&known, NOW_S - 60, 0, 1000, true, &other), 1000u);
    cr_expect_eq(elements_written(&known, NOW_S - 700, 0, 1000, true, &other), 1000u);
    cr_expect_eq(elements_written(&known, NOW_S - 700, 0, 1000, true, &other), 1000u,
        "the key of an old minute may have expired meanwhile");
    known_sketches_forget(&known);
    cr_expect_eq(elements_written(&known, NOW_S, 0, 1000, true, &is), 1000u);
    known_sketches_release(&known);
}
