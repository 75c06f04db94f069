/* What several partitions have of a bucket, remembered in one value. */
#include "storage/pages/kept_tables.h"

#include <string.h>

#include <criterion/criterion.h>

TestSuite(kept_tables, .timeout = 60);

#define HOUR_S INT64_C(3600)
#define N      4 /* partitions */

static struct bucket buckets[] = {{LEVEL_HOUR, 0, HOUR_S}, {LEVEL_HOUR, HOUR_S, 2 * HOUR_S},
    {LEVEL_HOUR, 2 * HOUR_S, 3 * HOUR_S}};
static const struct cover cover = {.buckets = buckets, .n = 3};
static const struct remembered_run one = {.first = 1, .n = 1, .proof = PROOF_VER};
static const struct remembered_run two = {.first = 1, .n = 2, .proof = PROOF_VER};

static struct kept_tables tables_of(struct cache *cache, size_t most)
{
    struct kept_tables tables;
    kept_tables_begin(&tables, cache, cache_id(cache, "site", 4), N, most, 1 << 16);
    return tables;
}

static struct kept_table *find(struct kept_tables *tables, const struct remembered_run *run)
{
    struct kept_table *table = kept_tables_find(tables, &cover, run);
    cr_assert_not_null(table);
    return table;
}

static void put(struct kept_tables *tables, const struct remembered_run *run, unsigned partition,
    uint64_t proof, const char *text)
{
    kept_tables_put(tables, find(tables, run), partition, proof, slice_of(text));
}

static bool has(
    const struct kept_table *table, unsigned partition, uint64_t proof, const char *text)
{
    return kept_table_proved(table, partition, proof) &&
           slice_equal(kept_table_part(table, partition), slice_of(text));
}

/* One question puts, the next one finds. */
static void keep(struct kept_tables *tables)
{
    struct cache *cache = tables->cache;
    size_t most = tables->most;
    kept_tables_keep(tables);
    kept_tables_release(tables);
    *tables = tables_of(cache, most);
}

Test(kept_tables, each_partition_has_its_part_under_its_own_proof)
{
    struct cache *cache = cache_new(1 << 20);
    struct kept_tables tables = tables_of(cache, 1 << 16);
    put(&tables, &one, 0, 10, "zero");
    put(&tables, &one, 3, 13, "three");
    put(&tables, &two, 0, 10, "both hours");
    keep(&tables);
    const struct kept_table *table = find(&tables, &one);
    cr_expect(has(table, 0, 10, "zero"));
    cr_expect(has(table, 3, 13, "three"));
    cr_expect_not(kept_table_proved(table, 3, 10), "another one's proof");
    cr_expect_not(kept_table_proved(table, 1, 10), "not read");
    cr_expect_not(kept_table_proved(table, 1, 0), "no proof");
    cr_expect(has(find(&tables, &two), 0, 10, "both hours"));
    kept_tables_release(&tables);
    cache_free(cache);
}

Test(kept_tables, a_part_that_is_read_anew_leaves_the_others)
{
    struct cache *cache = cache_new(1 << 20);
    struct kept_tables tables = tables_of(cache, 1 << 16);
    put(&tables, &one, 0, 10, "zero");
    put(&tables, &one, 1, 11, "one");
    keep(&tables);
    size_t bytes = cache_bytes(cache);
    put(&tables, &one, 0, 20, "ZERO");
    cr_expect(has(find(&tables, &one), 0, 20, "ZERO"), "before it is kept, too");
    keep(&tables);
    const struct kept_table *table = find(&tables, &one);
    cr_expect(has(table, 0, 20, "ZERO"));
    cr_expect(has(table, 1, 11, "one"));
    cr_expect_not(kept_table_proved(table, 0, 10));
    cr_expect_eq(cache_bytes(cache), bytes, "the older part takes no room");
    kept_tables_release(&tables);
    cache_free(cache);
}

Test(kept_tables, an_empty_part_is_known_too)
{
    struct cache *cache = cache_new(1 << 20);
    struct kept_tables tables = tables_of(cache, 1 << 16);
    put(&tables, &one, N - 1, 7, "");
    keep(&tables);
    cr_expect(has(find(&tables, &one), N - 1, 7, ""));
    kept_tables_release(&tables);
    cache_free(cache);
}

Test(kept_tables, what_is_too_large_is_not_kept)
{
    struct cache *cache = cache_new(1 << 20);
    struct kept_tables tables = tables_of(cache, 64);
    put(&tables, &one, 0, 10, "0123456789012345678901234567890123456789");
    put(&tables, &two, 1, 11, "0123456789012345678901234567890123456789");
    put(&tables, &two, 2, 12, "0123456789012345678901234567890123456789");
    keep(&tables);
    cr_expect(kept_table_proved(find(&tables, &one), 0, 10));
    cr_expect_not(kept_table_proved(find(&tables, &two), 1, 11));
    kept_tables_release(&tables);
    cache_free(cache);
}

Test(kept_tables, what_there_is_no_room_for_leaves_what_was_there)
{
    struct cache *cache = cache_new(1 << 20);
    struct kept_tables tables = tables_of(cache, 1 << 16);
    put(&tables, &one, 0, 10, "zero");
    keep(&tables);
    tables.room = 40;
    put(&tables, &one, 1, 11, "one");
    put(&tables, &one, 0, 20, "no room for this one");
    put(&tables, &two, 2, 12, "");
    keep(&tables);
    cr_expect(has(find(&tables, &one), 0, 10, "zero"));
    cr_expect(has(find(&tables, &one), 1, 11, "one"));
    cr_expect(has(find(&tables, &two), 2, 12, ""), "a smaller one has room");
    kept_tables_release(&tables);
    cache_free(cache);
}

Test(kept_tables, tables_are_found_in_any_order)
{
    struct cache *cache = cache_new(1 << 20);
    struct kept_tables tables = tables_of(cache, 1 << 16);
    const struct kept_table *first = find(&tables, &one);
    const struct kept_table *second = find(&tables, &two);
    cr_expect_neq(first, second);
    cr_expect_eq(find(&tables, &one), first);
    cr_expect_eq(find(&tables, &one), first);
    cr_expect_eq(find(&tables, &two), second);
    cr_expect_eq(find(&tables, &two), second);
    kept_tables_release(&tables);
    cache_free(cache);
}
