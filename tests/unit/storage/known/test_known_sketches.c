#include "storage/known/known_sketches.h"

#include <criterion/criterion.h>

/* Which sketches have a place, and who loses one. */
TestSuite(known_sketches, .timeout = 60);

#define NOW_MS INT64_C(1795187834000)

static void fill(struct known_sketches *known, int64_t now_ms)
{
    for (uint64_t i = 0; i < KNOWN_SKETCHES; i++) {
        cr_assert_not_null(known_sketches_take(known, 1000 + i, 100 + i, now_ms));
    }
}

Test(known_sketches, nothing_is_known_at_first)
{
    struct known_sketches known = {0};
    cr_expect_null(known_sketches_find(&known, 5));
    cr_expect_null(known_sketches_find(&known, 0));
    cr_expect_null(known_sketches_take(&known, 0, 1000, NOW_MS));
    cr_expect_null(known_sketches_take(&known, 5, KNOWN_SKETCHES_FEW - 1, NOW_MS), "too few");
    known_sketches_release(&known);
}

Test(known_sketches, one_that_has_a_place_keeps_what_it_has)
{
    struct known_sketches known = {0};
    struct hll *hll = known_sketches_take(&known, 5, KNOWN_SKETCHES_FEW, NOW_MS);
    cr_assert_not_null(hll);
    hll->registers[7] = 9;
    cr_expect_eq(known_sketches_find(&known, 5), hll);
    cr_expect_eq(known_sketches_take(&known, 5, 1, NOW_MS), hll);
    cr_expect_eq(hll->registers[7], 9);
    cr_expect_null(known_sketches_find(&known, 6));
    known_sketches_release(&known);
}

Test(known_sketches, one_that_gets_more_takes_the_place_of_the_least)
{
    struct known_sketches known = {0};
    fill(&known, NOW_MS);
    known.sketches[0]->registers[7] = 9;
    cr_expect_null(known_sketches_take(&known, 5, 100, NOW_MS), "not more");
    struct hll *hll = known_sketches_take(&known, 5, 101, NOW_MS);
    cr_assert_not_null(hll);
    cr_expect_eq(hll->registers[7], 0, "of another sketch");
    cr_expect_null(known_sketches_find(&known, 1000));
    cr_expect_not_null(known_sketches_find(&known, 1001));
    known_sketches_release(&known);
}

Test(known_sketches, one_that_is_idle_loses_its_place)
{
    struct known_sketches known = {0};
    fill(&known, NOW_MS);
    cr_expect_not_null(known_sketches_take(&known, 1003, 1, NOW_MS + 6000));
    cr_expect_not_null(known_sketches_take(&known, 5, KNOWN_SKETCHES_FEW, NOW_MS + 6000));
    cr_expect_not_null(known_sketches_find(&known, 1003));
    cr_expect_null(known_sketches_find(&known, 1000));
    known_sketches_release(&known);
}

Test(known_sketches, forgets)
{
    struct known_sketches known = {0};
    fill(&known, NOW_MS);
    known.sketches[0]->registers[7] = 9;
    known_sketches_forget(&known);
    cr_expect_null(known_sketches_find(&known, 1000));
    cr_expect_eq(known_sketches_take(&known, 1000, 100, NOW_MS)->registers[7], 0);
    known_sketches_release(&known);
}
