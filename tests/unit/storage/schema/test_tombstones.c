#include "storage/schema/tombstones.h"

#include <criterion/criterion.h>

/* Which events a partition does not count, by the sites that were deleted. */
TestSuite(tombstones, .timeout = 60);

Test(tombstones, say_from_when_on_a_site_counts)
{
    struct tombstones all = tombstones_of(SLICE("blog 1000 a\nshop 0 b\nx 0 c\n"));
    cr_expect_eq(tombstones_before(&all, SLICE("blog")), 1000);
    cr_expect_eq(tombstones_before(&all, SLICE("shop")), INT64_MAX);
    cr_expect_eq(tombstones_before(&all, SLICE("sho")), INT64_MIN);
    cr_expect(slice_equal(tombstones_going_on(&all), SLICE("shop")));
    all = tombstones_of(SLICE("blog 1000 a\n"));
    cr_expect_eq(tombstones_going_on(&all).n, 0u);
    all = tombstones_of(SLICE(""));
    cr_expect_eq(tombstones_before(&all, SLICE("blog")), INT64_MIN);
    cr_expect_eq(tombstones_going_on(&all).n, 0u);
}

Test(tombstones, cover_what_arrived_before)
{
    struct tombstones all = tombstones_of(SLICE("blog 1000 a\nshop 0 b\nx 30 c\n"));
    static const struct {
        const char *site;
        int64_t arrival_ms;
        bool covered;
    } cases[] = {{"blog", 999, true}, {"blog", 1000, false}, {"shop", 999999999999999, true},
        {"x", 29, true}, {"x", 30, false}, {"blo", 1, false}, {"blog ", 1, false}, {"", 1, false}};
    cr_expect_eq(all.last_ms, INT64_MAX);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(tombstones_cover(&all, slice_of(cases[i].site), cases[i].arrival_ms),
            cases[i].covered, "%s %lld", cases[i].site, (long long)cases[i].arrival_ms);
    }
}

Test(tombstones, none_cover_nothing)
{
    static const char *const texts[] = {"", "\n", "blog", "blog 5", "blog\n", " \n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tombstones none = tombstones_of(slice_of(texts[i]));
        cr_expect_not(tombstones_cover(&none, SLICE("blog"), 1), "%s", texts[i]);
    }
    cr_expect_eq(tombstones_of(SLICE("")).last_ms, INT64_MIN);
    cr_expect_eq(tombstones_of(SLICE("a 7 x\nb 9 y\n")).last_ms, 9);
}
