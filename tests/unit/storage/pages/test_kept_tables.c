/* What several partitions have of a bucket, remembered in one value. */
#include "storage/pages/kept_tables.h"

#include <string.h>

#include <criterion/criterion.h>

#include "storage/time/units.h"

TestSuite(kept_tables, .timeout = 60);

#define N 4 /* partitions */

static struct bucket buckets[] = {{LEVEL_HOUR, 0, HOUR_S}, {LEVEL_HOUR, HOUR_S, 2 * HOUR_S},
    {LEVEL_HOUR, 2 * HOUR_S, 3 * HOUR_S}};
static const struct cover cover = {.buckets = buckets, .n = 3};
static const struct remembered_run one = {.first = 1, .n = 1, .proof = PROOF_VER};
static const struct remembered_run two = {.first = 1, .n = 2, .proof = PROOF_VER};

static struct cache *cache;
static struct kept_tables tables;

static void begin(size_t most)
{
    kept_tables_begin(&tables, cache, cache_id(cache, "site", 4), N, most, 1 << 16);
}

static void setup(void)
{
    cache = cache_new(1 << 20);
    begin(1 << 16);
}

static void teardown(void)
{
    kept_tables_release(&tables);
    cache_free(cache);
}

static struct kept_table *find(const struct remembered_run *run)
{
    struct kept_table *table = kept_tables_find(&tables, &cover, run);
    cr_assert_not_null(table);
    return table;
}

static void put(
    const struct remembered_run *run, unsigned partition, uint64_t proof, const char *text)
{
    kept_tables_put(&tables, find(run), partition, proof, slice_of(text));
}

static bool has(
    const struct kept_table *table, unsigned partition, uint64_t proof, const char *text)
{
    return kept_table_proved(table, partition, proof) &&
           slice_equal(kept_table_part(table, partition), slice_of(text));
}

/* One question puts, the next one finds. */
static void keep(void)
{
    size_t most = tables.most;
    kept_tables_keep(&tables);
    kept_tables_release(&tables);
    begin(most);
}

Test(kept_tables, each_partition_has_its_part_under_its_own_proof, .init = setup, .fini = teardown)
{
    put(&one, 0, 10, "zero");
    put(&one, 3, 13, "three");
    put(&two, 0, 10, "both hours");
    keep();
    const struct kept_table *table = find(&one);
    cr_expect(has(table, 0, 10, "zero"));
    cr_expect(has(table, 3, 13, "three"));
    cr_expect_not(kept_table_proved(table, 3, 10), "another one's proof");
    cr_expect_not(kept_table_proved(table, 1, 10), "not read");
    cr_expect_not(kept_table_proved(table, 1, 0), "no proof");
    cr_expect(has(find(&two), 0, 10, "both hours"));
}

Test(kept_tables, a_part_that_is_read_anew_leaves_the_others, .init = setup, .fini = teardown)
{
    put(&one, 0, 10, "zero");
    put(&one, 1, 11, "one");
    keep();
    size_t bytes = cache_bytes(cache);
    put(&one, 0, 20, "ZERO");
    cr_expect(has(find(&one), 0, 20, "ZERO"), "before it is kept, too");
    keep();
    const struct kept_table *table = find(&one);
    cr_expect(has(table, 0, 20, "ZERO"));
    cr_expect(has(table, 1, 11, "one"));
    cr_expect_not(kept_table_proved(table, 0, 10));
    cr_expect_eq(cache_bytes(cache), bytes, "the older part takes no room");
}

Test(kept_tables, an_empty_part_is_known_too, .init = setup, .fini = teardown)
{
    put(&one, N - 1, 7, "");
    keep();
    cr_expect(has(find(&one), N - 1, 7, ""));
}

Test(kept_tables, what_is_too_large_is_not_kept, .init = setup, .fini = teardown)
{
    tables.most = 64;
    put(&one, 0, 10, "0123456789012345678901234567890123456789");
    put(&two, 1, 11, "0123456789012345678901234567890123456789");
    put(&two, 2, 12, "0123456789012345678901234567890123456789");
    keep();
    cr_expect(kept_table_proved(find(&one), 0, 10));
    cr_expect_not(kept_table_proved(find(&two), 1, 11));
}

Test(kept_tables, what_there_is_no_room_for_leaves_what_was_there, .init = setup, .fini = teardown)
{
    put(&one, 0, 10, "zero");
    keep();
    tables.room = 40;
    put(&one, 1, 11, "one");
    put(&one, 0, 20, "no room for this one");
    put(&two, 2, 12, "");
    keep();
    cr_expect(has(find(&one), 0, 10, "zero"));
    cr_expect(has(find(&one), 1, 11, "one"));
    cr_expect(has(find(&two), 2, 12, ""), "a smaller one has room");
}

Test(kept_tables, tables_are_found_in_any_order, .init = setup, .fini = teardown)
{
    const struct kept_table *first = find(&one);
    const struct kept_table *second = find(&two);
    cr_expect_neq(first, second);
    cr_expect_eq(find(&one), first);
    cr_expect_eq(find(&one), first);
    cr_expect_eq(find(&two), second);
    cr_expect_eq(find(&two), second);
}
