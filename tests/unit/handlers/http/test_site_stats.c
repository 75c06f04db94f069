#include "handlers/http/site_stats.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* Events by site: the first hundred, and the others. */
TestSuite(site_stats, .timeout = 60);

static struct site_stats stats;

static void count(const char *site, size_t n)
{
    struct event events[8] = {{.at_s = 0}};
    cr_assert_leq(n, 8u);
    for (size_t i = 0; i < n; i++) {
        events[i].site = slice_of(site);
    }
    site_stats_count(&stats, events, n);
}

Test(site_stats, the_first_sites_have_their_own)
{
    char site[16];
    struct event mixed[] = {{.site = SLICE("s0")}, {.site = SLICE("s1")}, {.site = SLICE("s0")}};
    for (int i = 0; i < 130; i++) {
        (void)snprintf(site, sizeof(site), "s%d", i);
        count(site, 2);
    }
    site_stats_count(&stats, mixed, 3);
    count("other", 5);
    cr_expect_eq(atomic_load(&stats.other), 65);
    cr_expect_str_eq(atomic_load(&stats.slots[99].name)->text, "s99");
    cr_expect_eq(atomic_load(&stats.slots[0].events), 4);
    cr_expect_eq(atomic_load(&stats.slots[1].events), 3);
    cr_expect_eq(atomic_load(&stats.slots[99].events), 2);
    site_stats_release(&stats);
    cr_expect_null(atomic_load(&stats.slots[0].name));
}
