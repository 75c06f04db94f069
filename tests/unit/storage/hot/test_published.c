/* test_published.c - lists of hot pages of many processes as one: rates and errors add up. */
#include "storage/hot/published.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/job/event.h"
#include "tests/lib/dice.h"

static struct hot_page page_of(
    const char *site, const char *page, double reads, double writes, double error)
{
    size_t n = strlen(site);
    char *text = malloc(n + strlen(page) + 1);
    memcpy(text, site, n);
    memcpy(text + n, page, strlen(page) + 1);
    return (struct hot_page){.site = {text, n},
        .page = {text + n, strlen(page)},
        .text = text,
        .reads_per_s = reads,
        .writes_per_s = writes,
        .error = error};
}

static void free_names(struct hot_page *pages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(pages[i].text);
    }
}

static void check(const struct hot_page *page, const char *site, const char *name, double reads,
    double writes, double error)
{
    cr_assert(slice_equal(page->site, slice_of(site)) && slice_equal(page->page, slice_of(name)),
        "%.*s %.*s", (int)page->site.n, page->site.p, (int)page->page.n, page->page.p);
    cr_assert_float_eq(page->reads_per_s, reads, 1e-5);
    cr_assert_float_eq(page->writes_per_s, writes, 1e-5);
    cr_assert_float_eq(page->error, error, 1e-5, "%s: %g", name, page->error);
}

Test(published, rates_and_errors_of_processes_add_up)
{
    struct hot_page mine[] = {page_of("a", "/x", 2, 5, 0.5), page_of("a", "/y", 0, 1, 0.5)};
    struct hot_page theirs[] = {page_of("a", "/y", 1, 9, 0.25), page_of("ab", "/y", 0, 4, 0)};
    struct published_lists lists = {0};
    struct buffer bytes;
    struct hot_page *all = NULL;
    size_t n = 0;
    buffer_init(&bytes);
    published_write(&bytes, theirs, 2, 0.125);
    cr_assert(published_add(&lists, mine, 2, 1.5));
    cr_assert(published_add_bytes(&lists, (struct slice){bytes.p, bytes.n}));
    cr_assert(published_merge(&lists, &all, &n));
    cr_assert_eq(n, 3);
    check(&all[0], "a", "/y", 1, 10, 0.75);
    check(&all[1], "a", "/x", 2, 5, 0.625); /* they may have had an eighth */
    check(&all[2], "ab", "/y", 0, 4, 1.5);
    hot_pages_release(all, n);
    buffer_release(&bytes);
    free_names(mine, 2);
    free_names(theirs, 2);
}

/* What finds no room is as what was absent before. */
Test(published, is_bounded_in_pages_and_in_bytes)
{
    enum { PAGES = PUBLISHED_PAGES + 100 };
    static char name[EVENT_PAGE_MAX + 1];
    for (int is_long = 0; is_long < 2; is_long++) {
        struct hot_page pages[PAGES];
        struct published_lists lists = {0};
        struct buffer bytes;
        struct hot_page *all = NULL;
        size_t n = 0;
        memset(name, 'n', sizeof(name) - 1);
        for (int i = 0; i < PAGES; i++) {
            (void)snprintf(name, sizeof(name), "/%d", i);
            name[strlen(name)] = is_long ? 'n' : '\0';
            pages[i] = page_of("site", name, 0, 1000 - i, 1);
        }
        buffer_init(&bytes);
        published_write(&bytes, pages, PAGES, 2);
        cr_assert_leq(bytes.n, PUBLISHED_BYTES + 64);
        cr_assert(published_add_bytes(&lists, (struct slice){bytes.p, bytes.n}));
        size_t kept = lists.n;
        cr_assert(is_long ? kept > 20 && kept < 40 : kept == PUBLISHED_PAGES, "%zu", kept);
        cr_assert_float_eq(lists.absent, 1000 - (double)kept + 1, 1e-5);
        cr_assert(published_merge(&lists, &all, &n));
        cr_assert_eq(n, kept);
        for (size_t i = 0; i < n; i++) {
            cr_assert(slice_equal(all[i].page, pages[i].page));
            cr_assert_float_eq(all[i].writes_per_s, 1000 - (double)i, 1e-5);
        }
        hot_pages_release(all, n);
        buffer_release(&bytes);
        free_names(pages, PAGES);
    }
}

/* Bytes that another version, or somebody else, has put there. */
Test(published, foreign_bytes_do_no_harm)
{
    struct dice dice = dice_make(dice_seed());
    struct hot_page pages[] = {page_of("a", "/x", 2, 5, 0.5), page_of("a", "/y", 0, 1, 0.5)};
    struct buffer bytes;
    buffer_init(&bytes);
    published_write(&bytes, pages, 2, 1);
    for (size_t cut = 0; cut <= bytes.n; cut++) { /* cut off anywhere, and one bit wrong */
        for (int tries = 0; tries < 20; tries++) {
            struct published_lists lists = {0};
            struct hot_page *all = NULL;
            size_t n = 0;
            char *copy = malloc(cut + 1);
            memcpy(copy, bytes.p, cut);
            if (cut > 0 && tries > 0) {
                size_t at = (size_t)dice_below(&dice, (int64_t)cut);
                copy[at] = (char)(copy[at] ^ (1 << dice_below(&dice, 8)));
            }
            cr_assert(published_add_bytes(&lists, (struct slice){copy, cut}));
            cr_assert_leq(lists.n, 2);
            size_t whole =
                (size_t)(cut >= 40) + (size_t)(cut == bytes.n); /* head: 10, a page: 30 */
            cr_assert(tries > 0 || lists.n == whole, "%zu", cut);
            cr_assert(published_merge(&lists, &all, &n));
            hot_pages_release(all, n);
            free(copy);
        }
    }
    buffer_release(&bytes);
    free_names(pages, 2);
}

/* A site's name longer than any ends the list. */
Test(published, names_that_no_event_has)
{
    char site[EVENT_SITE_MAX + 2] = "";
    struct published_lists lists = {0};
    struct buffer bytes;
    memset(site, 's', EVENT_SITE_MAX + 1);
    struct hot_page pages[] = {page_of("a", "/x", 1, 1, 0), page_of(site, "/x", 1, 1, 0)};
    buffer_init(&bytes);
    published_write(&bytes, pages, 2, 0);
    cr_assert(published_add_bytes(&lists, (struct slice){bytes.p, bytes.n}));
    cr_expect_eq(lists.n, 1u);
    published_release(&lists);
    buffer_release(&bytes);
    free_names(pages, 2);
}
