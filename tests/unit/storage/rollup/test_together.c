/* Which names of a day keep an entry: rollup_put_together() of rollup/together.h. */
#include "storage/rollup/together.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/job/counted_name.h"

#define START_S INT64_C(1773100800) /* 2026-03-10 */
#define DAY_S   86400

static struct rollup_list list;
static struct rollup_site sites[2];
static struct rollup_cut cut;
static struct storage_config config = {.max_pages = 2, .max_values = 1, .max_events = 0};
static struct retention retention;
static struct together together;

static void setup(void)
{
    sites[0] = (struct rollup_site){SLICE("a"), 0};
    sites[1] = (struct rollup_site){SLICE("b"), 0};
    cut.target = (struct bucket){.level = LEVEL_DAY, .start_s = START_S, .end_s = START_S + DAY_S};
    for (cut.n_parts = 0; cut.n_parts < 24; cut.n_parts++) {
        int64_t start_s = START_S + (int64_t)cut.n_parts * 3600;
        cut.parts[cut.n_parts] =
            (struct bucket){.level = LEVEL_HOUR, .start_s = start_s, .end_s = start_s + 3600};
    }
    list.sites = sites;
    list.cuts = &cut;
    for (int level = 0; level < LEVELS; level++) {
        retention.keep_s[level] = KEEP_FOREVER;
    }
    together = (struct together){.config = &config,
        .n_partitions = 1,
        .retention = &retention,
        .now_ms = (START_S + DAY_S + 30) * 1000};
}

static void teardown(void)
{
    list.sites = NULL;
    list.cuts = NULL;
    free(list.items);
    arena_release(&list.arena);
}

TestSuite(together, .init = setup, .fini = teardown, .timeout = 60);

static void add(uint32_t site, enum key_kind kind, const char *name, uint64_t count)
{
    cr_assert(array_reserve(&list.items, &list.items_capacity, list.n_items, sizeof(*list.items)));
    list.items[list.n_items++] = (struct rollup_item){
        .site = site, .kind = kind, .page = slice_of(name), .parts = 1, .count = count};
}

/* "own.name anew.name .." of the items, in their order. */
static const char *ways(void)
{
    static char text[4096];
    static const char *const way[] = {"own", "anew", "together"};
    size_t n = 0;
    for (size_t i = 0; i < list.n_items; i++) {
        const struct rollup_item *item = &list.items[i];
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s.%.*s", i == 0 ? "" : " ",
            way[item->way], (int)item->page.n, item->page.p);
    }
    text[n] = '\0';
    return text;
}

Test(together, those_with_most_keep_their_entries_and_of_equal_ones_the_first)
{
    static const char *const names[] = {"/d", "/b", "", "/c", "/a"};
    static const uint64_t counts[] = {3, 9, 20, 3, 3};
    for (size_t i = 0; i < 5; i++) {
        add(0, KEY_PV, names[i], counts[i]);
    }
    cr_assert(rollup_put_together(&list, &together));
    cr_expect_str_eq(ways(), "own. own./a own./b anew.\x04 together./c together./d");
    cr_expect_eq(list.items[3].parts, (UINT64_C(1) << 24) - 1, "late events may be in any part");
}

Test(together, each_class_site_and_kind_by_itself)
{
    add(0, KEY_PV, "\x02sx", 5);
    add(0, KEY_PV, "\x02sy", 4);
    add(0, KEY_PV, "\x02bz", 1);
    add(1, KEY_PV, "/1", 1);
    add(1, KEY_PV, "/2", 1);
    add(0, KEY_VV, "/1", 1);
    add(0, KEY_VV, "/2", 1);
    add(0, KEY_VV, "/3", 1);
    add(0, KEY_VV,
        "\x05"
        "e",
        1);
    add(0, KEY_PV,
        "\x01"
        "event",
        1);
    add(0, KEY_PV,
        "\x01"
        "other event",
        1);
    add(0, KEY_PV,
        "\x03"
        "section",
        1);
    add(0, KEY_PV, "\x04\x02s", 7);
    cr_assert(rollup_put_together(&list, &together));
    size_t n[3] = {0};
    for (size_t i = 0; i < list.n_items; i++) {
        n[list.items[i].way]++;
        cr_expect(i == 0 || list.items[i].site > list.items[i - 1].site ||
                      (list.items[i].site == list.items[i - 1].site &&
                          (list.items[i].kind > list.items[i - 1].kind ||
                              list.items[i].way >= list.items[i - 1].way)),
            "%s", ways());
    }
    cr_expect_not_null(strstr(ways(), "anew.\x04\x02s together.\x02sy"), "%s", ways());
    cr_expect_not_null(strstr(ways(), "anew.\x04 together./3"), "%s", ways());
    cr_expect(n[MERGE_ANEW] == 2 && n[MERGE_TOGETHER] == 2 && n[MERGE_OWN] == 10, "%s", ways());
}

Test(together, a_pass_that_begins_again_forgets_what_was_put_together)
{
    add(0, KEY_PV, "/1", 1);
    add(0, KEY_PV, "", 1);
    together.again = true;
    cr_assert(rollup_put_together(&list, &together));
    cr_expect_str_eq(ways(), "own. own./1 anew.\x04");
}

/* Late events may have come into any part of what is put together, also where it is listed. */
Test(together, what_was_put_together_in_the_parts_is_looked_for_in_all)
{
    static const char *const names[] = {"/a", "/b", "/c", "\x04"};
    for (size_t i = 0; i < 4; i++) {
        add(0, KEY_PV, names[i], 1);
    }
    cr_assert(rollup_put_together(&list, &together));
    cr_expect_str_eq(ways(), "own./a own./b anew.\x04 together./c");
    cr_expect_eq(list.items[2].parts, (UINT64_C(1) << 24) - 1);
}

Test(together, names_stay_where_parts_may_be_gone_before_the_pass_is)
{
    for (char name[] = "/0"; name[1] < '9'; name[1]++) {
        char *copy = arena_alloc(&list.arena, sizeof(name));
        memcpy(copy, name, sizeof(name));
        add(0, KEY_PV, copy, 1);
    }
    retention.keep_s[LEVEL_HOUR] = (int64_t)23 * 3600 + 1800;
    cr_assert(rollup_put_together(&list, &together));
    cr_expect_null(strstr(ways(), "together"), "%s", ways());
    retention.keep_s[LEVEL_HOUR] = (int64_t)25 * 3600;
    cr_assert(rollup_put_together(&list, &together));
    cr_expect_not_null(strstr(ways(), "together"), "%s", ways());
}

Test(together, nothing)
{
    cr_assert(rollup_put_together(&list, &together));
    cr_expect_eq(list.n_items, 0);
}
