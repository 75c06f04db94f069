#include "storage/read/page_sets.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/dice.h"

TestSuite(page_sets, .timeout = 60);

static void check(const char *first, const char *value, const char *expected)
{
    struct slice named = slice_of(first);
    char text[256] = "";
    size_t n = 0;
    struct slice *pages = page_set_decode(&named, named.n > 0, slice_of(value), &n);
    cr_assert(pages != NULL);
    for (size_t i = 0; i < n; i++) {
        strncat(text, pages[i].p, pages[i].n);
        strcat(text, ";");
    }
    cr_expect_str_eq(text, expected, "%s and %s: %s, not %s", first, value, text, expected);
    free(pages);
}

Test(page_sets, pages_come_once_in_order)
{
    check("", "/a\n/b\n", "/a;/b;");
    check("", "/b\n/a\n/b\n", "/b;/a;");
    check("/b", "/a\n/b\n/c\n", "/b;/a;/c;");
    check("/b", "", "/b;");
}

Test(page_sets, foreign_bytes_are_no_fault)
{
    check("", "", "");
    check("", "\n\n", "");
    check("", "/a", "/a;");
    check("", "\n/a\n\n/b", "/a;/b;");
}

Test(page_sets, what_is_too_long_or_too_much_is_left_out)
{
    size_t n_text = 0;
    size_t n = 0;
    char *text = malloc(32 * (PAGE_SET_MAX + 100) + 2 * EVENT_PAGE_MAX);
    cr_assert(text != NULL);
    memset(text, 'x', EVENT_PAGE_MAX + 1); /* one byte too long */
    n_text = EVENT_PAGE_MAX + 1;
    text[n_text++] = '\n';
    for (int i = 0; i < PAGE_SET_MAX + 100; i++) {
        n_text += (size_t)sprintf(text + n_text, "/%d\n", i);
    }
    struct slice *pages = page_set_decode(NULL, 0, (struct slice){text, n_text}, &n);
    cr_assert(pages != NULL);
    cr_expect_eq(n, PAGE_SET_MAX);
    cr_expect(slice_equal(pages[0], SLICE("/0")));
    cr_expect(slice_equal(pages[PAGE_SET_MAX - 1], SLICE("/999")));
    free(pages);
    free(text);
}

/* Whatever the bytes are: no page is empty, too long, has a line end or comes twice. */
Test(page_sets, any_bytes)
{
    struct dice dice = dice_make(dice_seed());
    for (int round = 0; round < 2000; round++) {
        char text[64];
        size_t n_text = (size_t)dice_below(&dice, sizeof(text));
        size_t n = 0;
        for (size_t i = 0; i < n_text; i++) {
            text[i] = "\n\n/ab\xff"[dice_below(&dice, 6)];
        }
        struct slice *pages = page_set_decode(NULL, 0, (struct slice){text, n_text}, &n);
        cr_assert(pages != NULL);
        for (size_t i = 0; i < n; i++) {
            cr_expect(pages[i].n > 0 && memchr(pages[i].p, '\n', pages[i].n) == NULL);
            for (size_t j = 0; j < i; j++) {
                cr_expect(!slice_equal(pages[i], pages[j]));
            }
        }
        free(pages);
    }
}
