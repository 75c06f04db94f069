#include "storage/count/bucket_sums.h"

#include <criterion/criterion.h>

TestSuite(bucket_sums, .timeout = 60);

#define MINUTE_S INT64_C(60)
#define HOUR_S   INT64_C(3600)
#define DAY_S    (20000 * 24 * HOUR_S) /* its first second */

static const struct ver ver = {1, "v"};
static const struct cache_id name = {{1}};
static struct cache *cache;

static void setup(void)
{
    cache = cache_new(1 << 16);
}

static void teardown(void)
{
    cache_free(cache);
}

/* Minutes [first, first + n) of the day, which have 100 for each minute of their number. */
static struct bucket minutes[24 * 60];
static struct bucket_run run_of(size_t first, size_t n, uint64_t *sums)
{
    for (size_t i = first; i < first + n; i++) {
        minutes[i] = (struct bucket){
            LEVEL_MINUTE, DAY_S + (int64_t)i * MINUTE_S, DAY_S + (int64_t)(i + 1) * MINUTE_S};
        sums[2 * (i - first)] = 100 * i;
    }
    return (struct bucket_run){zone_utc(), &minutes[first], n, 2};
}

static void keep(size_t first, size_t n, const struct ver *by)
{
    uint64_t sums[2 * 60];
    struct bucket_run run = run_of(first, n, sums);
    bucket_sums_keep(cache, &name, by, &run, sums);
}

/* Are they all known, with that sum? */
static bool finds(size_t first, size_t n)
{
    uint64_t sums[2 * 60];
    uint64_t sum = 7;
    struct bucket_run run = run_of(first, n, sums);
    bool found = bucket_sums_find(cache, &name, &ver, &run, &sum);
    cr_expect_eq(sum, found ? 100 * (2 * first + n - 1) * n / 2 : 7, "%zu, %zu", first, n);
    return found;
}

Test(bucket_sums, a_run_that_lies_in_what_is_known, .init = setup, .fini = teardown)
{
    cr_expect_not(finds(12, 48));
    keep(12, 48, &ver);
    for (size_t first = 12; first < 60; first++) {
        cr_expect(finds(first, 60 - first), "from minute %zu", first);
        cr_expect(finds(12, first - 11));
    }
    cr_expect_not(finds(11, 2), "a minute before it");
    cr_expect_not(finds(11, 1));
    cr_expect_not(finds(72, 1), "of another hour");
}

Test(bucket_sums, what_is_known_grows_together, .init = setup, .fini = teardown)
{
    keep(20, 5, &ver);
    keep(10, 5, &ver);
    cr_expect_not(finds(10, 15), "there is a gap");
    cr_expect(finds(10, 5) && finds(20, 5));
    keep(14, 7, &ver);
    cr_expect(finds(10, 15));
    keep(0, 60, &ver);
    cr_expect(finds(0, 60));
}

Test(bucket_sums, another_proof_makes_it_unknown, .init = setup, .fini = teardown)
{
    const struct ver later = {1, "w"};
    keep(0, 60, &later);
    cr_expect_not(finds(0, 60));
    keep(3, 2, &ver);
    cr_expect(finds(3, 2));
    cr_expect_not(finds(0, 60), "nothing of what the other one proved");
}

Test(bucket_sums, a_run_of_several_hours, .init = setup, .fini = teardown)
{
    keep(50, 30, &ver);
    cr_expect(finds(50, 30));
    cr_expect(finds(59, 2));
    cr_expect(finds(60, 20));
    cr_expect_not(finds(50, 31));
    keep(0, 50, &ver);
    cr_expect(finds(20, 60));
    cr_expect_not(finds(110, 20), "nothing is known of the third hour");
}

/* Hours and minutes that begin at one instant are told apart. */
Test(bucket_sums, levels_are_told_apart, .init = setup, .fini = teardown)
{
    const struct bucket hour = {LEVEL_HOUR, DAY_S, DAY_S + HOUR_S};
    const struct bucket day = {LEVEL_DAY, DAY_S, DAY_S + 24 * HOUR_S};
    const struct bucket_run of_hour = {zone_utc(), &hour, 1, 1};
    const struct bucket_run of_day = {zone_utc(), &day, 1, 1};
    const uint64_t sums[] = {5};
    uint64_t sum = 0;
    keep(0, 1, &ver);
    cr_expect_not(bucket_sums_find(cache, &name, &ver, &of_hour, &sum));
    bucket_sums_keep(cache, &name, &ver, &of_hour, sums);
    cr_expect_not(bucket_sums_find(cache, &name, &ver, &of_day, &sum));
    cr_expect(bucket_sums_find(cache, &name, &ver, &of_hour, &sum) && sum == 5);
}
