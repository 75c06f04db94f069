#include "storage/pages/sums.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/lib/dice.h"

TestSuite(page_sums, .timeout = 60);

#define SITE SLICE("s")

static uint32_t find(struct page_sums *sums, const char *page, bool add)
{
    uint32_t i = 0;
    cr_assert(page_sums_find(sums, SITE, slice_of(page), add, &i));
    return i;
}

Test(page_sums, a_page_has_one_sum)
{
    struct page_sums sums = {0};
    cr_expect_eq(find(&sums, "/a", false), INDEX_NONE);
    uint32_t a = find(&sums, "/a", true);
    cr_expect_eq(find(&sums, "/a", true), a);
    cr_expect_neq(find(&sums, "/b", true), a);
    cr_expect_eq(find(&sums, "/a", false), a);
    cr_expect_eq(sums.n, 2);
    page_sums_clear(&sums);
    cr_expect_eq(find(&sums, "/a", false), INDEX_NONE);
    page_sums_release(&sums);
}

Test(page_sums, a_page_that_comes_twice_has_the_greater_of_its_values)
{
    struct page_sums sums = {0};
    uint32_t a = find(&sums, "/a", true);
    cr_assert(page_sums_reserve_present(&sums, a, 20));
    page_sums_take(&sums, a, 1, 19, 7);
    page_sums_take(&sums, a, 1, 19, 9);
    page_sums_take(&sums, a, 1, 19, 8);
    cr_expect_eq(sums.all[a].pv, 9);
    page_sums_take(&sums, a, 2, 3, 9);
    cr_expect_eq(sums.all[a].pv, 18, "another bucket");
    cr_assert(page_sums_reserve_present(&sums, a, 20));
    cr_expect_eq(sums.all[a].present[0], 1 << 3);
    cr_expect_eq(sums.all[a].present[1], 0);
    cr_expect_eq(sums.all[a].present[2], 1 << 3);
    page_sums_release(&sums);
}

Test(page_sums, many_pages_against_an_array)
{
    static uint64_t expected[5000];
    struct page_sums sums = {0};
    struct dice dice = dice_make(dice_seed());
    for (uint32_t turn = 1; turn <= 20; turn++) {
        for (int k = 0; k < 1000; k++) {
            char name[24];
            unsigned page = (unsigned)dice_below(&dice, 5000);
            (void)snprintf(name, sizeof(name), "/%u", page);
            uint32_t i = find(&sums, name, true);
            cr_assert(page_sums_reserve_present(&sums, i, 21));
            bool again = (sums.all[i].present[turn / 8] >> (turn & 7) & 1) != 0;
            page_sums_take(&sums, i, turn, turn, page + 1);
            expected[page] += again ? 0 : page + 1;
        }
    }
    for (unsigned page = 0; page < 5000; page++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "/%u", page);
        uint32_t i = find(&sums, name, false);
        cr_expect_eq(i == INDEX_NONE ? 0 : sums.all[i].pv, expected[page]);
    }
    page_sums_release(&sums);
}
