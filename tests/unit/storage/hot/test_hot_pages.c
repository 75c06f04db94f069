/* test_hot_pages.c - Space-Saving's guarantee, and the window over it, against exact counts. */
#include "storage/hot/hot_pages.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "storage/hot/space_saving.h"
#include "storage/job/event.h"
#include "storage/schema/partition.h"
#include "tests/lib/dice.h"

#define PAGES 20000

static const struct slice SITE = {"shop", 4};

static struct slice page_of(int number, char text[32])
{
    int n = snprintf(text, 32, "/page/%d", number);
    return (struct slice){text, (size_t)n};
}

/* Log-uniform: near Zipf's law. */
static int draw(struct dice *dice, int pages)
{
    double u = (double)dice_below(dice, 1 << 30) / (1 << 30);
    return (int)pow(pages, u) - 1;
}

/* No count is too low, none too high by more than it says, and none without a counter is above the
 * floor. */
Test(space_saving, keeps_its_promise)
{
    struct dice dice = dice_make(dice_seed());
    for (int round = 0; round < 5; round++) {
        int pages = round == 0 ? 100 : PAGES;
        struct space_saving *s = calloc(1, sizeof(*s));
        uint32_t *truth = calloc(PAGES, sizeof(*truth));
        bool *counted = calloc(PAGES, sizeof(*counted));
        enum { EVENTS = 200000 };
        for (int i = 0; i < EVENTS; i++) {
            char text[32];
            int number = round == 4 ? (int)dice_below(&dice, pages) : draw(&dice, pages);
            struct slice page = page_of(number, text);
            truth[number]++;
            space_saving_add(s, page_hash(SITE, page), SITE, page);
        }
        uint64_t over = 0;
        for (size_t i = 0; i < (size_t)SPACE_SAVING_SETS * SPACE_SAVING_WAYS; i++) {
            const struct space_saving_set *set = &s->sets[i / SPACE_SAVING_WAYS];
            size_t way = i % SPACE_SAVING_WAYS;
            const struct space_saving_name *name = set->name[way];
            if (set->count[way] == 0 || name == NULL) {
                continue;
            }
            char text[64];
            (void)snprintf(text, sizeof(text), "%.*s", name->page_n, name->text + name->site_n);
            long number = strtol(text + 6, NULL, 10);
            counted[number] = true;
            cr_assert_geq(set->count[way], truth[number], "%s", text);
            cr_assert_leq(set->count[way] - set->over[way], truth[number], "%s", text);
            over = set->over[way] > over ? set->over[way] : over;
        }
        uint32_t floor = space_saving_floor(s);
        for (int number = 0; number < pages; number++) {
            cr_assert(counted[number] || truth[number] <= floor + 1, "page %d: %u of at most %u",
                number, truth[number], floor);
        }
        cr_assert_leq(floor, EVENTS / 100, "round %d: the floor is %u", round, floor);
        if (round == 0) {
            cr_assert_eq(floor, 0, "all have counters of their own");
        }
        space_saving_clear(s);
        free(s);
        free(truth);
        free(counted);
    }
}

static void write_page(struct hot_pages *hot, unsigned core, int64_t now_ms, int number)
{
    char text[32];
    struct slice page = page_of(number, text);
    struct event event = {.site = SITE, .page = page};
    hot_pages_writes(hot, core, now_ms, &event, 1);
}

static void read_page(struct hot_pages *hot, unsigned core, int64_t now_ms, int number)
{
    char text[32];
    struct slice page = page_of(number, text);
    hot_pages_reads(hot, core, now_ms, SITE, &page, 1);
}

static long number_of(const struct hot_page *page)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%.*s", (int)page->page.n, page->page.p);
    return strtol(text + 6, NULL, 10);
}

/* 30 s of skewed load on several cores: the right pages, rates off by no more than their errors,
 * and those are small. */
Test(hot_pages, finds_them_in_a_skewed_load)
{
    enum { SECONDS = 45, A_SECOND = 20000, CORES = 3, BEGIN = 3600000 };
    struct dice dice = dice_make(dice_seed());
    struct hot_pages *hot = hot_pages_new(CORES, BEGIN);
    uint32_t(*truth)[2] = calloc(PAGES, sizeof(*truth));
    int64_t now_ms = BEGIN;
    int64_t first_ms = ((BEGIN + SECONDS * 1000 - 1) / HOT_SLOT_MS - HOT_SLOTS + 1) * HOT_SLOT_MS;
    for (int i = 0; i < SECONDS * A_SECOND; i++) {
        now_ms = BEGIN + (int64_t)i * 1000 / A_SECOND;
        int number = draw(&dice, PAGES);
        if (dice_chance(&dice, 100)) {
            number = PAGES - 1 - number; /* what is read is not what is written */
            read_page(hot, (unsigned)dice_below(&dice, 100), now_ms, number);
            truth[number][0] += now_ms >= first_ms;
        } else {
            write_page(hot, (unsigned)dice_below(&dice, 100), now_ms, number);
            truth[number][1] += now_ms >= first_ms;
        }
    }
    struct hot_page *pages = NULL;
    size_t n = 0;
    double absent = 0;
    double seconds = (double)(now_ms - first_ms) / 1000;
    cr_assert(hot_pages_list(hot, now_ms, 100, &pages, &n, &absent));
    cr_assert_eq(n, 100);
    bool listed[PAGES] = {false};
    for (size_t i = 0; i < n; i++) {
        long number = number_of(&pages[i]);
        listed[number] = true;
        double reads = truth[number][0] / seconds, writes = truth[number][1] / seconds;
        cr_assert_leq(
            fabs(pages[i].reads_per_s - reads), pages[i].error + 1e-6, "page %ld", number);
        cr_assert_leq(
            fabs(pages[i].writes_per_s - writes), pages[i].error + 1e-6, "page %ld", number);
        cr_assert_leq(pages[i].error, A_SECOND * 0.02, "page %ld: %g", number, pages[i].error);
        cr_assert(i == 0 || pages[i].reads_per_s + pages[i].writes_per_s <=
                                pages[i - 1].reads_per_s + pages[i - 1].writes_per_s);
    }
    for (int number = 0; number < PAGES; number++) { /* one in a hundred of all */
        uint32_t both = truth[number][0] + truth[number][1];
        cr_assert(listed[number] || both < seconds * A_SECOND / 100, "page %d: %u", number, both);
        cr_assert(listed[number] || (truth[number][0] / seconds <= absent + 1e-6 &&
                                        truth[number][1] / seconds <= absent + 1e-6));
    }
    cr_assert_leq(absent, A_SECOND * 0.04);
    cr_assert(listed[0] && listed[PAGES - 1]);
    hot_pages_release(pages, n);
    hot_pages_free(hot);
    free(truth);
}

Test(hot_pages, few_are_counted_exactly_and_forgotten_after_half_a_minute)
{
    struct hot_pages *hot = hot_pages_new(2, 0);
    struct hot_page *pages = NULL;
    size_t n = 0;
    double absent = 0;
    cr_assert(hot_pages_list(hot, 0, 10, &pages, &n, &absent));
    cr_assert_eq(n, 0);
    hot_pages_release(pages, n);
    for (int i = 0; i < 60; i++) {
        write_page(hot, (unsigned)i, 100 * i, 7);
        read_page(hot, (unsigned)i, 100 * i, i % 2 == 0 ? 7 : 8);
    }
    cr_assert(hot_pages_list(hot, 10000, 10, &pages, &n, &absent));
    cr_assert_eq(n, 2);
    cr_assert_eq(number_of(&pages[0]), 7);
    cr_assert_float_eq(pages[0].writes_per_s, 6, 1e-9);
    cr_assert_float_eq(pages[0].reads_per_s, 3, 1e-9);
    cr_assert_float_eq(pages[1].writes_per_s, 0, 1e-9);
    cr_assert_float_eq(pages[1].reads_per_s, 3, 1e-9);
    cr_assert_float_eq(pages[0].error, 0, 1e-9);
    hot_pages_release(pages, n);
    cr_assert_float_eq(absent, 0, 1e-9);
    cr_assert(hot_pages_list(hot, 10000, 1, &pages, &n, &absent));
    cr_assert_eq(n, 1);
    cr_assert_float_eq(absent, 3, 1e-9, "that of page 8");
    hot_pages_release(pages, n);
    cr_assert(hot_pages_list(hot, 40000, 10, &pages, &n, &absent));
    cr_assert_eq(n, 0, "nothing in the last half minute");
    hot_pages_release(pages, n);
    hot_pages_free(hot);
}

/* Long names are copied up to a bound. */
Test(hot_pages, memory_of_names_is_bounded)
{
    struct space_saving *s = calloc(1, sizeof(*s));
    static char text[2048];
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(text, 12, "%011d", i % 700);
        struct slice page = {text, sizeof(text)};
        space_saving_add(s, page_hash(SITE, page), SITE, page);
        cr_assert_leq(s->name_bytes, SPACE_SAVING_NAMES);
    }
    cr_assert_gt(s->name_bytes, SPACE_SAVING_NAMES / 2);
    space_saving_clear(s);
    cr_assert_eq(s->name_bytes, 0);
    free(s);
}

struct hammer {
    struct hot_pages *hot;
    unsigned core;
};

static void *hammer(void *data)
{
    struct hammer *h = data;
    struct dice dice = dice_make(h->core);
    for (int i = 0; i < 30000; i++) {
        write_page(h->hot, h->core / 2, i, (int)dice_below(&dice, 2000));
        read_page(h->hot, h->core / 2, i, (int)dice_below(&dice, 2000));
        if (i % 5000 == 0) {
            struct hot_page *pages = NULL;
            size_t n = 0;
            double absent = 0;
            cr_assert(hot_pages_list(h->hot, i, 10, &pages, &n, &absent));
            hot_pages_release(pages, n);
        }
    }
    return NULL;
}

Test(hot_pages, is_thread_safe)
{
    struct hot_pages *hot = hot_pages_new(2, 0);
    pthread_t threads[4];
    struct hammer hammers[4];
    for (unsigned i = 0; i < 4; i++) {
        hammers[i] = (struct hammer){hot, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    hot_pages_free(hot);
}

/* Of a slot that is over only the greatest counters are kept.  A page without a counter may have
 * had as much as the greatest of the others, and a page with one had no more than the counter. */
Test(hot_pages, what_a_slot_may_hide_is_an_error)
{
    enum { GREAT = 200, SMALL = 201, MANY = 100, BEGIN = 3600000, SECONDS = 4 };
    struct hot_pages *hot = hot_pages_new(1, BEGIN);
    struct hot_page *pages = NULL;
    size_t n = 0;
    double absent = 0;
    for (int i = 0; i < 1000; i++) {
        write_page(hot, 0, BEGIN, GREAT);
    }
    for (int i = 0; i < 5 * MANY; i++) {
        write_page(hot, 0, BEGIN, i % MANY);
    }
    for (int i = 0; i < 4; i++) {
        write_page(hot, 0, BEGIN, SMALL); /* is not kept */
    }
    for (int i = 0; i < 600; i++) {
        write_page(hot, 0, BEGIN + HOT_SLOT_MS, SMALL);
    }
    cr_assert(hot_pages_list(hot, BEGIN + SECONDS * 1000, 2, &pages, &n, &absent));
    cr_assert_eq(n, 2);
    cr_assert_eq(number_of(&pages[0]), GREAT);
    cr_expect_float_eq(pages[0].writes_per_s, 1000.0 / SECONDS, 1e-9);
    cr_expect_float_eq(pages[0].error, 0, 1e-9, "%g", pages[0].error);
    cr_assert_eq(number_of(&pages[1]), SMALL);
    cr_expect_float_eq(pages[1].writes_per_s, 600.0 / SECONDS, 1e-9);
    cr_expect_float_eq(pages[1].error, 5.0 / SECONDS, 1e-9, "%g", pages[1].error);
    hot_pages_release(pages, n);
    hot_pages_free(hot);
}
