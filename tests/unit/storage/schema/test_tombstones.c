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
    struct key field;
    cr_assert(tombstones_going_on(&all, &field));
    cr_expect(slice_equal((struct slice){field.p, field.n}, SLICE("shop")));
    all = tombstones_of(SLICE("blog 1000 a\n"));
    cr_expect_not(tombstones_going_on(&all, &field));
    all = tombstones_of(SLICE(""));
    cr_expect_eq(tombstones_before(&all, SLICE("blog")), INT64_MIN);
    cr_expect_not(tombstones_going_on(&all, &field));
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

Test(tombstones, cover_pages)
{
    struct tombstones all = tombstones_of(
        SLICE("shop%0A=/a%20b%25 1000 a\nshop%0A^/reset 0 b\nblog%0A=/x 0 c\nbad%0A=/%2 0 d\n"));
    static const struct {
        const char *site, *page;
        int64_t arrival_ms;
        bool covered;
    } cases[] = {{"shop", "/a b%", 999, true}, {"shop", "/a b%", 1000, false},
        {"shop", "/a b", 1, false}, {"shop", "/a b%c", 1, false}, {"shop", "/reset", 5000, true},
        {"shop", "/reset?x", 5000, true}, {"shop", "/rese", 1, false}, {"shop", "", 1, false},
        {"shop", "/x", 1, false}, {"blog", "/x", 1, true}, {"blo", "/x", 1, false},
        {"blogs", "/x", 1, false}, {"bad", "/", 1, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(tombstones_cover_page(&all, slice_of(cases[i].site), slice_of(cases[i].page),
                         cases[i].arrival_ms),
            cases[i].covered, "%s %s %lld", cases[i].site, cases[i].page,
            (long long)cases[i].arrival_ms);
    }
    cr_expect_not(tombstones_cover(&all, SLICE("shop"), 1), "the site counts");
    cr_expect_eq(tombstones_before(&all, SLICE("shop\n=/a b%")), 1000);
    cr_expect_eq(tombstones_before(&all, SLICE("shop")), INT64_MIN);
    struct key field;
    cr_assert(tombstones_going_on(&all, &field));
    cr_expect(slice_equal((struct slice){field.p, field.n}, SLICE("shop\n^/reset")));
    all = tombstones_of(SLICE("bad%0A=/%2 0 d\n"));
    cr_expect_not(tombstones_going_on(&all, &field), "it is none");
}
