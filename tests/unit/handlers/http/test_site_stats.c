#include "handlers/http/site_stats.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

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

Test(site_stats, sums_are_counted_when_the_events_are_gone)
{
    char sites[2] = {'a', 'b'};
    struct slice a = {&sites[0], 1};
    struct slice b = {&sites[1], 1};
    struct event mixed[] = {{.site = a}, {.site = a}, {.site = b}, {.site = a}};
    struct site_sums one;
    struct site_sums many;
    struct site_sums none;
    cr_assert(site_sums_take(&stats, mixed, 2, &one));
    cr_assert(site_sums_take(&stats, mixed, 4, &many));
    cr_assert(site_sums_take(&stats, mixed, 0, &none));
    memset(sites, 'x', sizeof(sites));
    memset(mixed, 0, sizeof(mixed));
    cr_expect_eq(one.n, 1u);
    cr_expect_eq(many.n, 3u);
    cr_expect_eq(atomic_load(&stats.slots[0].events), 0, "they are not counted yet");
    site_sums_count(&one);
    site_sums_count(&many);
    site_sums_count(&none);
    cr_expect_eq(atomic_load(&stats.slots[0].events), 5);
    cr_expect_eq(atomic_load(&stats.slots[1].events), 1);
    site_sums_release(&one);
    site_sums_release(&many);
    site_sums_release(&none);
    site_stats_release(&stats);
}
