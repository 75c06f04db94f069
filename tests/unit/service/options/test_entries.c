/* The named lines of the configuration file: kept once for each name, and found by it. */
#include "service/options/entries.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

TestSuite(entries, .timeout = 60);

#define MANY   50000 /* as 1 MiB of a file may have */
#define MOST_S 4     /* of processor time: an index takes 0.02, a search from the first line 7 */

static const struct option_family *family(size_t at)
{
    return &option_families[at];
}

/* Add an entry, whose value is of no interest.  Is it a new one? */
static bool add(struct options *options, size_t of, const char *name)
{
    bool is_new = false;
    struct option_entry *entry = entries_add(options, family(of), slice_of(name), &is_new);
    cr_assert_not_null(entry);
    cr_expect_str_eq(entry->name, name);
    cr_expect_eq(entry->family, family(of));
    return is_new;
}

Test(entries, a_name_is_kept_once_in_each_family)
{
    struct options options = {0};
    cr_expect_null(entries_find(&options, family(OPTION_FAMILY_SITE_TZ), SLICE("a")));
    cr_expect(add(&options, OPTION_FAMILY_SITE_TZ, "a"));
    cr_expect(add(&options, OPTION_FAMILY_SITE_PROPS, "a"));
    cr_expect(add(&options, OPTION_FAMILY_SITE_TZ, "ab"));
    cr_expect_not(add(&options, OPTION_FAMILY_SITE_TZ, "a"));
    cr_expect_eq(options.n_entries, 3);
    cr_expect_eq(
        entries_find(&options, family(OPTION_FAMILY_SITE_TZ), SLICE("a")), &options.entries[0]);
    cr_expect_eq(
        entries_find(&options, family(OPTION_FAMILY_SITE_PROPS), SLICE("a")), &options.entries[1]);
    cr_expect_null(entries_find(&options, family(OPTION_FAMILY_SITE_PROPS), SLICE("ab")));
    cr_expect_null(entries_find(&options, family(OPTION_FAMILY_POLICY), SLICE("a")));
    entries_release(&options);
}

Test(entries, many_names_take_no_time)
{
    struct options options = {0};
    char name[32];
    clock_t begun = clock();
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            (void)snprintf(name, sizeof(name), "%u", i);
            cr_assert_eq(add(&options, OPTION_FAMILY_POLICY, name), round == 0);
        }
    }
    cr_expect_eq(options.n_entries, MANY);
    cr_expect_lt(clock() - begun, MOST_S * CLOCKS_PER_SEC);
    entries_release(&options);
}
