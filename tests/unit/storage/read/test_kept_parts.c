/* What several partitions have of a run, remembered in one value. */
#include "storage/read/kept_parts.h"

#include <criterion/criterion.h>
#include <string.h>

#include "storage/time/units.h"

TestSuite(kept_parts, .timeout = 60);

#define N      4 /* partitions */
#define NOON_S (20000 * 24 * HOUR_S + 12 * HOUR_S)

static struct bucket buckets[] = {{LEVEL_HOUR, NOON_S - 3 * HOUR_S, NOON_S - 2 * HOUR_S},
    {LEVEL_HOUR, NOON_S - 2 * HOUR_S, NOON_S - HOUR_S}, {LEVEL_HOUR, NOON_S - HOUR_S, NOON_S}};
static const struct cover cover = {.buckets = buckets, .n = 3};
static const struct remembered_run one = {.first = 1, .n = 1, .proof = PROOF_VER};
static const struct remembered_run two = {.first = 1, .n = 2, .proof = PROOF_VER};

static struct core core;
static struct proved_partition known[N];
static struct proved_read r;
static struct kept_parts parts;

static void begin(size_t most)
{
    kept_parts_begin(&parts, &r, cache_id(core.cache, "site", 4), most, 1 << 16);
}

/* The partition's `ver` is @id now; "": it has none. */
static void set_ver(unsigned partition, const char *id)
{
    known[partition] =
        (struct proved_partition){.view = {.known = true, .state = rollup_state_initial(NOON_S)}};
    known[partition].view.ver.n = (uint8_t)strlen(id);
    memcpy(known[partition].view.ver.text, id, strlen(id));
}

static void setup(void)
{
    core.cache = cache_new(1 << 20);
    core.partitions.n = N;
    r = (struct proved_read){.core = &core, .zone = zone_utc(), .known = known};
    for (unsigned p = 0; p < N; p++) {
        set_ver(p, "v1");
    }
    begin(1 << 16);
}

static void teardown(void)
{
    kept_parts_release(&parts);
    cache_free(core.cache);
}

static bool put(const struct remembered_run *run, unsigned partition, const char *text)
{
    return kept_parts_put(&parts, partition, &cover, run, slice_of(text));
}

static bool is_known(const struct remembered_run *run, unsigned partition)
{
    return kept_parts_recall(&parts, partition, &cover, run) != NULL;
}

static bool has(const struct remembered_run *run, unsigned partition, const char *text)
{
    const struct kept_run *kept = kept_parts_recall(&parts, partition, &cover, run);
    return kept != NULL && slice_equal(kept_run_part(kept, partition), slice_of(text));
}

/* One question puts, the next one finds. */
static void keep(void)
{
    size_t most = parts.most;
    kept_parts_keep(&parts);
    kept_parts_release(&parts);
    begin(most);
}

Test(kept_parts, each_partition_has_its_part_under_its_own_proof, .init = setup, .fini = teardown)
{
    set_ver(3, "v3");
    cr_expect(put(&one, 0, "zero"));
    cr_expect(put(&one, 3, "three"));
    cr_expect(put(&two, 0, "both hours"));
    keep();
    cr_expect(has(&one, 0, "zero"));
    cr_expect_eq(known[0].unproved, 1u << PROOF_VER, "the next reply must have it");
    cr_expect(has(&one, 3, "three"));
    cr_expect(has(&two, 0, "both hours"));
    cr_expect_not(is_known(&one, 1), "not read");
    cr_expect_eq(known[1].unproved, 0u);
    set_ver(3, "v1");
    cr_expect_not(is_known(&one, 3), "another one's proof");
    set_ver(3, "");
    cr_expect_not(is_known(&one, 3), "no proof");
}

Test(kept_parts, a_part_that_is_read_anew_leaves_the_others, .init = setup, .fini = teardown)
{
    put(&one, 0, "zero");
    put(&one, 1, "one");
    keep();
    size_t bytes = cache_bytes(core.cache);
    set_ver(0, "v2");
    cr_expect_not(is_known(&one, 0));
    put(&one, 0, "ZERO");
    cr_expect(has(&one, 0, "ZERO"), "before it is kept, too");
    keep();
    cr_expect(has(&one, 0, "ZERO"));
    cr_expect(has(&one, 1, "one"));
    set_ver(0, "v1");
    cr_expect_not(is_known(&one, 0));
    cr_expect_eq(cache_bytes(core.cache), bytes, "the older part takes no room");
}

Test(kept_parts, what_no_proof_stands_for_is_not_kept, .init = setup, .fini = teardown)
{
    known[0].changed = 1u << PROOF_VER;
    cr_expect_not(put(&one, 0, "zero"));
    known[0].changed = 0;
    cr_expect_not(is_known(&one, 0));
}

Test(kept_parts, an_empty_part_is_known_too, .init = setup, .fini = teardown)
{
    put(&one, N - 1, "");
    keep();
    cr_expect(has(&one, N - 1, ""));
}

Test(kept_parts, what_is_too_large_is_not_kept, .init = setup, .fini = teardown)
{
    parts.most = 64;
    put(&one, 0, "0123456789012345678901234567890123456789");
    put(&two, 1, "0123456789012345678901234567890123456789");
    put(&two, 2, "0123456789012345678901234567890123456789");
    keep();
    cr_expect(is_known(&one, 0));
    cr_expect_not(is_known(&two, 1));
}

Test(kept_parts, what_there_is_no_room_for_leaves_what_was_there, .init = setup, .fini = teardown)
{
    put(&one, 0, "zero");
    keep();
    parts.room = 40;
    put(&one, 1, "one");
    put(&one, 0, "no room for this one");
    put(&two, 2, "");
    keep();
    cr_expect(has(&one, 0, "zero"));
    cr_expect(has(&one, 1, "one"));
    cr_expect(has(&two, 2, ""), "a smaller one has room");
}

Test(kept_parts, runs_are_found_in_any_order, .init = setup, .fini = teardown)
{
    put(&one, 0, "one");
    put(&two, 0, "two");
    for (unsigned i = 0; i < 2; i++) {
        cr_expect(has(&one, 0, "one"));
        cr_expect(has(&one, 0, "one"));
        cr_expect(has(&two, 0, "two"));
        cr_expect(has(&two, 0, "two"));
    }
}
