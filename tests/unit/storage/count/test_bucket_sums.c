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
    return (struct bucket_run){&minutes[first], n, 2};
}

static void keep(size_t first, size_t n, const struct ver *by)
{
    uint64_t sums[2 * 60];
    struct bucket_run run = run_of(first, n, sums);
    struct cache_id id = bucket_sums_id(cache, zone_utc(), &name, run.buckets[0]);
    bucket_sums_keep(cache, &id, by, &run, sums);
}

/* Are they all known, with that sum? */
static bool finds(size_t first, size_t n)
{
    uint64_t sums[2 * 60];
    uint64_t sum = 7;
    struct bucket_run run = run_of(first, n, sums);
    struct cache_id id = bucket_sums_id(cache, zone_utc(), &name, run.buckets[0]);
    bool found = bucket_sums_find(cache, &id, &ver, &run, &sum);
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

static size_t of(enum level level, int64_t length_s, size_t n, enum proof proof)
{
    struct bucket buckets[100];
    struct cover cover = {.buckets = buckets, .n = n};
    struct remembered_run run = {.first = 0, .n = n, .proof = proof};
    for (size_t i = 0; i < n; i++) {
        buckets[i] = (struct bucket){
            level, DAY_S + (int64_t)i * length_s, DAY_S + (int64_t)(i + 1) * length_s};
    }
    return bucket_sums_of(zone_utc(), &cover, &run);
}

Test(bucket_sums, closed_buckets_of_one_coarser_bucket)
{
    cr_expect_eq(of(LEVEL_MINUTE, MINUTE_S, 1, PROOF_VER), 1u);
    cr_expect_eq(of(LEVEL_MINUTE, MINUTE_S, 60, PROOF_VER), 60u);
    cr_expect_eq(of(LEVEL_MINUTE, MINUTE_S, 61, PROOF_VER), 0u, "of two hours");
    cr_expect_eq(of(LEVEL_MINUTE, MINUTE_S, 60, PROOF_OVER), 0u, "that changes each minute");
    cr_expect_eq(of(LEVEL_HOUR, HOUR_S, 24, PROOF_VER), 24u);
    cr_expect_eq(of(LEVEL_HOUR, HOUR_S, 25, PROOF_VER), 0u);
    cr_expect_eq(of(LEVEL_MONTH, 30 * 24 * HOUR_S, 1, PROOF_VER), 0u);
}
