#include "storage/filter/groups.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(filter_groups, .timeout = 60);

/* All items that went in, each once and in a group of its string, in the order of the items. */
static void check(const struct filter_groups *groups, const uint64_t *segments, size_t most)
{
    struct group group = {0};
    size_t n = 0;
    bool *seen = calloc(groups->n_items + 1, sizeof(*seen));
    cr_assert(seen);
    while (filter_groups_next(groups, most, &group)) {
        cr_assert_eq(group.from, n, "none is left out");
        cr_assert(group.to > group.from && group.to - group.from <= most);
        for (size_t i = group.from; i < group.to; i++, n++) {
            size_t item = groups->ordered[i];
            cr_assert_lt(item, groups->n_items);
            cr_assert_eq(groups->segments[group.string], segments[item]);
            cr_assert_eq(groups->string[item], group.string);
            cr_assert(i == group.from || item > groups->ordered[i - 1]);
            cr_assert_not(seen[item]);
            seen[item] = true;
        }
    }
    cr_expect_eq(n, groups->n_items);
    free(seen);
}

/* Item i is of the segment i * 7 % @segments. */
static void fill(size_t n, uint64_t segments, size_t expected)
{
    struct filter_groups *groups = malloc(sizeof(*groups));
    uint64_t *of = calloc(n + 1, sizeof(*of));
    size_t in = 0;
    cr_assert(groups && of);
    filter_groups_begin(groups);
    for (; in < n; in++) {
        of[in] = in * 7 % segments;
        if (!filter_groups_add(groups, of[in])) {
            break;
        }
    }
    filter_groups_end(groups);
    cr_expect_eq(in, expected, "%zu of %zu", in, n);
    cr_expect_eq(groups->n_items, in);
    check(groups, of, FILTER_ITEMS_MAX);
    check(groups, of, 8);
    check(groups, of, 1);
    filter_groups_begin(groups);
    cr_expect(filter_groups_add(groups, segments), "the first one fits");
    filter_groups_end(groups);
    check(groups, &segments, 8);
    free(groups);
    free(of);
}

Test(filter_groups, one_string)
{
    fill(0, 1, 0);
    fill(1, 1, 1);
    fill(FILTER_ITEMS_MAX, 1, FILTER_ITEMS_MAX);
}

Test(filter_groups, several_strings)
{
    fill(2, 2, 2);
    fill(FILTER_ITEMS_MAX, 5, FILTER_ITEMS_MAX);
    fill(FILTER_ITEMS_MAX, GROUPS_STRINGS_MAX, FILTER_ITEMS_MAX);
}

/* What did not fit leaves no trace. */
Test(filter_groups, more_than_fit)
{
    fill(FILTER_ITEMS_MAX + 1, 3, FILTER_ITEMS_MAX);
    fill(FILTER_ITEMS_MAX, GROUPS_STRINGS_MAX + 1, GROUPS_STRINGS_MAX);
}
