/* Buckets of pages as Redis brings them: what they add up to, and what is remembered of them. */
#include "storage/pages/gather.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/time/units.h"

TestSuite(gather, .timeout = 60);

#define NOON_S   (20000 * 24 * HOUR_S + 12 * HOUR_S)
#define MOST     1000
#define OTHERS   "\x04"
#define CACHE    (1 << 16)
#define NO_CACHE 0

/* An hour for itself, and two that stand side by side and are remembered as one run. */
enum { ALONE, FIRST, SECOND, BUCKETS };
static struct bucket buckets[] = {{LEVEL_HOUR, NOON_S - 5 * HOUR_S, NOON_S - 4 * HOUR_S},
    {LEVEL_HOUR, NOON_S - 2 * HOUR_S, NOON_S - HOUR_S}, {LEVEL_HOUR, NOON_S - HOUR_S, NOON_S}};
static struct cover cover = {.buckets = buckets, .n = BUCKETS};

static struct core *core;
static struct proved_partition known = {
    .view = {.known = true, .state = {{0}, {0}}, .ver = {2, "v1"}}};
static struct window_question asked = {.site = SLICE("s")};
static struct storage_job job;
static struct proved_read r;
static struct page_sums sums;
static struct capped_buckets capped;
static struct gathering g;

static void setup(void)
{
    core = calloc(1, sizeof(*core));
    cr_assert_not_null(core);
    core->partitions.n = 1;
    known.view.state = rollup_state_initial(NOON_S);
    r = (struct proved_read){.core = core,
        .job = &job,
        .asked = &asked,
        .zone = zone_utc(),
        .known = &known,
        .covers = &cover};
}

static void teardown(void)
{
    page_sums_release(&sums);
    capped_buckets_release(&capped);
    if (core->cache != NULL) {
        cache_free(core->cache);
    }
    free(core);
}

/* Begin to read pages by @kind; what was remembered before is recalled. */
static void begin(enum key_kind kind)
{
    page_sums_clear(&sums);
    capped.n = 0;
    g = (struct gathering){
        .r = &r, .sums = &sums, .capped = &capped, .n_buckets = BUCKETS, .n_most = MOST};
    part_set_add(&g.parts, 0);
    cr_assert(pages_memory_begin(&g.memory, &r, kind, &g.parts));
    cr_assert_eq(gathering_add_recalled(&g), STORAGE_OK);
}

static void use_cache(size_t bytes)
{
    core->config.cache_bytes = bytes;
    core->cache = bytes == NO_CACHE ? NULL : cache_new(1 << 20);
}

static void end(void)
{
    kept_parts_keep(&g.memory.kept);
    pages_memory_release(&g.memory);
}

/* Take a step of a scan that brings @page with @pv page views, and then says @cursor. */
static enum storage_err step(struct slot *slot, const char *page, uint64_t pv, const char *cursor)
{
    struct reply entries[] = {{.type = REPLY_TEXT, .text = slice_of(page)},
        {.type = REPLY_INTEGER, .integer = (int64_t)pv}};
    struct reply items[] = {{.type = REPLY_TEXT, .text = slice_of(cursor)},
        {.type = REPLY_ARRAY, .items = entries, .n = 2}};
    struct reply reply = {.type = REPLY_ARRAY, .items = items, .n = 2};
    return slot_take_step(&g, 0, slot, &reply);
}

/* Read a bucket that has one page. */
static enum storage_err read_one(size_t bucket, const char *page, uint64_t pv)
{
    struct slot slot = {.busy = false};
    slot_begin(&g, 0, &slot, bucket);
    enum storage_err err = step(&slot, page, pv, "0");
    slot_release(&slot);
    return err;
}

static bool is_recalled(size_t bucket)
{
    const struct remembered_run *run = pages_memory_run(&g.memory, 0, bucket);
    return run != NULL && run->recalled;
}

/* The page has @pv page views, in the buckets whose bits are set in @present. */
static void expect(const char *page, uint64_t pv, unsigned present)
{
    uint32_t i = 0;
    cr_assert(page_sums_find(&sums, asked.site, slice_of(page), false, &i));
    cr_assert_neq(i, INDEX_NONE, "%s", page);
    cr_expect_eq(sums.all[i].pv, pv, "%s: %llu", page, (unsigned long long)sums.all[i].pv);
    cr_expect_eq(sums.all[i].present[0], present, "%s: %x", page, sums.all[i].present[0]);
}

/* A site whose pages are too many for a table is read each time.  The pages that came before the
 * table was given up are a part of the run: they must not pass for all of the run. */
Test(gather, a_part_of_a_run_is_not_remembered, .init = setup, .fini = teardown)
{
    enum { TABLE = 160, PAGES = 10 }; /* bytes of a table; the pages take 130 of them */
    use_cache(8 * TABLE);
    for (int round = 0; round < 2; round++) {
        begin(KEY_PV);
        cr_expect_not(is_recalled(FIRST), "round %d", round);
        struct slot slot = {.busy = false};
        slot_begin(&g, 0, &slot, FIRST);
        cr_expect_not_null(slot.run);
        for (int i = 0; i < PAGES; i++) {
            char page[] = {'/', (char)('0' + i), '\0'};
            cr_assert_eq(step(&slot, page, 1, i + 1 < PAGES ? "5" : "0"), STORAGE_OK);
        }
        slot_begin(&g, 0, &slot, SECOND);
        cr_expect_null(slot.run, "no room is left for the table");
        cr_assert_eq(step(&slot, "/x", 3, "0"), STORAGE_OK);
        slot_release(&slot);
        cr_expect_eq(sums.n, PAGES + 1u);
        expect("/0", 1, 1 << FIRST);
        expect("/9", 1, 1 << FIRST);
        expect("/x", 3, 1 << SECOND);
        end();
    }
}

/* What was remembered comes to the same as what was read, also in a run that does not begin with
 * the cover. */
Test(gather, what_is_recalled_is_what_was_read, .init = setup, .fini = teardown)
{
    use_cache(CACHE);
    for (int round = 0; round < 2; round++) {
        begin(KEY_PV);
        cr_assert_eq(is_recalled(FIRST), round == 1);
        if (round == 0) {
            cr_assert_eq(read_one(ALONE, "/a", 1), STORAGE_OK);
            cr_assert_eq(read_one(FIRST, "/a", 2), STORAGE_OK);
            cr_assert_eq(read_one(SECOND, "/b", 4), STORAGE_OK);
        }
        expect("/a", 3, 1 << ALONE | 1 << FIRST);
        expect("/b", 4, 1 << SECOND);
        end();
    }
    begin(KEY_VV);
    cr_expect_not(is_recalled(FIRST), "page views are no visits");
    end();
}

/* A name may come twice in one scan, and then the greater number counts.  What caps put together is
 * told for each bucket. */
Test(gather, what_caps_put_together, .init = setup, .fini = teardown)
{
    for (int round = 0; round < 3; round++) { /* nothing remembered; read; recalled */
        if (round < 2) {
            use_cache(round == 0 ? NO_CACHE : CACHE);
        }
        begin(KEY_PV);
        cr_assert_eq(is_recalled(FIRST), round == 2);
        if (round < 2) {
            struct slot slot = {.busy = false};
            cr_assert_eq(read_one(FIRST, OTHERS, 5), STORAGE_OK);
            slot_begin(&g, 0, &slot, SECOND);
            cr_assert_eq(step(&slot, OTHERS, 6, "9"), STORAGE_OK);
            cr_assert_eq(step(&slot, OTHERS, 7, "0"), STORAGE_OK);
            slot_release(&slot);
        }
        cr_expect_eq(sums.n, 0u, "the name of others is no page");
        cr_assert_eq(capped.n, 2u, "round %d: %zu", round, capped.n);
        cr_expect_eq(capped_buckets_pv(&capped), 12u);
        for (size_t i = 0; i < capped.n; i++) {
            cr_expect_eq(capped.all[i].pv, capped.all[i].bucket == FIRST ? 5u : 7u);
            cr_expect(capped.all[i].bucket == FIRST + i, "round %d", round);
        }
        end();
    }
}

/* More pages than an answer may have are refused, whether they would be remembered or not. */
Test(gather, too_many_pages, .init = setup, .fini = teardown)
{
    for (int remembers = 0; remembers < 2; remembers++) {
        use_cache(remembers ? CACHE : NO_CACHE);
        begin(KEY_PV);
        g.n_most = 2;
        struct slot slot = {.busy = false};
        slot_begin(&g, 0, &slot, FIRST);
        cr_expect_eq(slot.run != NULL, remembers);
        cr_expect_eq(step(&slot, "/a", 1, "1"), STORAGE_OK);
        cr_expect_eq(step(&slot, "/b", 1, "2"), STORAGE_OK);
        cr_expect_eq(step(&slot, "/c", 1, "3"), STORAGE_TOO_BROAD);
        slot_release(&slot);
        end();
    }
}
