#include "storage/known/known_counts.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* What is remembered of counters, and for how long. */
TestSuite(known_counts, .timeout = 60);

#define NOW_MS INT64_C(1795187834000)

static struct known_counts known;

static void setup(void)
{
    known_counts_init(&known, 16);
}

static void teardown(void)
{
    known_counts_release(&known);
}

static uint64_t find(unsigned partition, const char *key, const char *name)
{
    struct known_bucket bucket;
    known_bucket_init(&bucket, &known, partition, key, strlen(key));
    return known_bucket_find(&bucket, slice_of(name));
}

static void set(unsigned partition, const char *key, const char *name, uint64_t value)
{
    struct known_bucket bucket;
    known_bucket_init(&bucket, &known, partition, key, strlen(key));
    known_bucket_set(&bucket, slice_of(name), value);
}

Test(
    known_counts, a_counter_is_one_of_a_partition_a_key_and_a_name, .init = setup, .fini = teardown)
{
    cr_expect_eq(find(3, "k", "/a"), 0u);
    set(3, "k", "/a", 7);
    set(3, "k", "", 8);
    cr_expect_eq(find(3, "k", "/a"), 7u);
    cr_expect_eq(find(3, "k", ""), 8u);
    cr_expect_eq(find(4, "k", "/a"), 0u);
    cr_expect_eq(find(3, "l", "/a"), 0u);
    cr_expect_eq(find(3, "k", "/b"), 0u);
    set(3, "k", "/a", UINT64_MAX);
    cr_expect_eq(find(3, "k", "/a"), UINT64_MAX);
    set(3, "k", "/b", 0);
    cr_expect_eq(find(3, "k", "/b"), 0u);
    cr_expect_eq(known.parts[3].n, 2u);
}

Test(known_counts, hold_for_one_id, .init = setup, .fini = teardown)
{
    known_counts_take(&known, 3, 5, NOW_MS);
    set(3, "k", "/a", 7);
    known_counts_hold(&known, 3, 6);
    set(4, "k", "/a", 9);
    known_counts_hold(&known, 4, 6);
    known_counts_take(&known, 3, 6, NOW_MS);
    cr_expect_eq(find(3, "k", "/a"), 7u);
    known_counts_take(&known, 3, 6, NOW_MS);
    cr_expect_eq(find(3, "k", "/a"), 7u, "as long as the state has it");
    known_counts_take(&known, 3, 7, NOW_MS);
    cr_expect_eq(find(3, "k", "/a"), 0u);
    known_counts_take(&known, 3, 6, NOW_MS);
    cr_expect_eq(find(3, "k", "/a"), 0u, "and not again");
    cr_expect_eq(find(4, "k", "/a"), 9u, "of another partition");
    known_counts_hold(&known, 4, 0);
    known_counts_take(&known, 4, 0, NOW_MS);
    cr_expect_eq(find(4, "k", "/a"), 0u, "no id is none");
}

/* What was too old to be remembered may have been incremented meanwhile. */
Test(known_counts, nothing_holds_when_the_clock_has_gone_back, .init = setup, .fini = teardown)
{
    known_counts_take(&known, 3, 5, NOW_MS);
    set(3, "k", "/a", 7);
    known_counts_hold(&known, 3, 6);
    known_counts_take(&known, 3, 6, NOW_MS + 1);
    cr_expect_eq(find(3, "k", "/a"), 7u);
    known_counts_take(&known, 3, 6, NOW_MS);
    cr_expect_eq(find(3, "k", "/a"), 0u);
}

/* As many as fit are found again, with their own values; one more, and all are forgotten. */
Test(known_counts, a_part_that_is_full_is_forgotten, .init = setup, .fini = teardown)
{
    char name[16];
    uint32_t most = known.size / 4 * 3;
    cr_expect_eq(known.size, KNOWN_COUNTS / 16u);
    for (uint32_t i = 0; i < most; i++) {
        (void)snprintf(name, sizeof(name), "/%u", i);
        set(0, "k", name, i + 1);
    }
    for (uint32_t i = 0; i < most; i++) {
        (void)snprintf(name, sizeof(name), "/%u", i);
        cr_expect_eq(find(0, "k", name), i + 1);
    }
    set(0, "k", "/0", 5);
    cr_expect_eq(find(0, "k", "/0"), 5u, "it was there");
    cr_expect_eq(find(0, "k", "/1"), 2u);
    set(0, "k", "one more", 1);
    cr_expect_eq(find(0, "k", "one more"), 1u);
    cr_expect_eq(find(0, "k", "/0"), 0u);
    cr_expect_eq(known.parts[0].n, 1u);
}

Test(known_counts, size_of_a_part)
{
    static const struct {
        unsigned partitions;
        uint32_t size;
    } sizes[] = {
        {1, 65536}, {2, 32768}, {3, 16384}, {16, 4096}, {17, 2048}, {256, 256}, {1024, 64}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        known_counts_init(&known, sizes[i].partitions);
        cr_expect_eq(known.size, sizes[i].size, "%u", sizes[i].partitions);
        known_counts_release(&known);
    }
}
