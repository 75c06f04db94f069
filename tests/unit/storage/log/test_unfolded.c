#include "storage/log/unfolded.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

/* Entries of several places share one bound, and each place has an order of its own. */
TestSuite(unfolded, .timeout = 20);

#define A "00000000000000aa"
#define B "00000000000000bb"

static struct core *core;
static struct unfolded unfolded;

static void setup(void)
{
    core = fold_core_make(1);
    unfolded_init(&unfolded, &core->stats);
    unfolded.n_logs = 2;
    unfolded_begin(&unfolded, 0, A);
    unfolded_begin(&unfolded, 1, B);
}

static void teardown(void)
{
    unfolded_release(&unfolded);
    fold_core_drop(core);
}

static void put(unsigned place, const char *id, uint64_t n, size_t events, int64_t answered_ms)
{
    struct log_entry *entry = fold_entry(id, n, FOLD_NOW_S, events);
    entry->acknowledged_us = answered_ms * 1000;
    cr_assert(unfolded_put(&unfolded, place, entry));
    entry_release(entry);
}

/* How many entries above @after wait at @place; *ret_last is the last one that was put in. */
static size_t count(unsigned place, uint64_t after, uint64_t *ret_last)
{
    char id[LOG_ID_TEXT + 1];
    struct log_entry **entries;
    size_t n;
    *ret_last = unfolded_take(&unfolded, place, after, SIZE_MAX, id, &entries, &n);
    cr_expect_str_eq(id, place == 0 ? A : B);
    for (size_t i = 0; i < n; i++) {
        cr_expect_str_eq(entries[i]->id, id);
        entry_release(entries[i]);
    }
    free(entries);
    return n;
}

Test(unfolded, places_are_apart_and_share_the_bound, .init = setup, .fini = teardown)
{
    uint64_t last;
    unfolded_limit(&unfolded, 10);
    put(0, A, 1, 3, INT64_MAX / 2000);
    put(1, B, 1, 4, INT64_MAX / 2000);
    put(1, B, 2, 2, INT64_MAX / 2000);
    cr_expect_eq(unfolded_room(&unfolded, 0), 1u, "9 events wait");
    cr_expect_eq(count(0, 0, &last), 1u);
    cr_expect_eq(last, 1u);
    cr_expect_eq(count(1, 1, &last), 1u, "the one above 1");
    cr_expect_eq(last, 2u);
    unfolded_done(&unfolded, 1, A, 9);
    cr_expect_eq(unfolded.logs[1].n, 2u, "another log is there");
    unfolded_done(&unfolded, 1, B, 1);
    cr_expect_eq(unfolded_room(&unfolded, 0), 5u);
    cr_expect_eq(unfolded_room(&unfolded, 4), 1u, "four more are on their way");
    cr_expect_eq(unfolded_room(&unfolded, 6), 0u);
    cr_expect_not(unfolded.was_full, "no fold is waited for");
    cr_expect_eq(atomic_load(&core->stats.log_events), 5);
}

static int64_t ten_seconds(void)
{
    return 10000000;
}

Test(unfolded, the_oldest_of_all_places_tells_the_age, .init = setup, .fini = teardown)
{
    stand_in.now_us = ten_seconds;
    cr_expect_eq(unfolded_age_ms(&unfolded), 0);
    put(1, B, 1, 1, 5000);
    put(1, B, 2, 1, 7000);
    put(0, A, 1, 1, 9000);
    cr_expect_eq(unfolded_age_ms(&unfolded), 5000);
    unfolded_done(&unfolded, 1, B, 1);
    cr_expect_eq(unfolded_age_ms(&unfolded), 3000);
    unfolded_done(&unfolded, 1, B, 2);
    cr_expect_eq(unfolded_age_ms(&unfolded), 1000);
    unfolded_begin(&unfolded, 0, B);
    cr_expect_eq(unfolded_age_ms(&unfolded), 0, "another log begins: what waited is let go");
    cr_expect_eq(unfolded.logs[0].n, 0u);
}

Test(unfolded, what_others_may_acknowledge_is_awaited, .init = setup, .fini = teardown)
{
    cr_expect(unfolded_await_shown(&unfolded, 0), "nothing is on its way");
    unfolded_shows(&unfolded, 1, 1);
    unfolded_shows(&unfolded, 1, 3);
    unfolded_shows(&unfolded, 1, 2);
    cr_expect_eq(unfolded_shown(&unfolded, 1), 3u, "an earlier one goes again");
    cr_expect_not(unfolded_await_shown(&unfolded, 0));
    put(1, B, 1, 1, 5000);
    unfolded_hides(&unfolded, 1, 2);
    cr_expect_eq(unfolded_shown(&unfolded, 1), 3u, "the one behind may be there all the same");
    put(1, B, 2, 1, 5000);
    cr_expect_not(unfolded_await_shown(&unfolded, 0));
    unfolded_hides(&unfolded, 1, 3);
    cr_expect_eq(unfolded_shown(&unfolded, 1), 2u);
    cr_expect(unfolded_await_shown(&unfolded, 0), "the third was refused");
    unfolded_shows(&unfolded, 0, 7);
    put(0, A, 6, 1, 5000);
    cr_expect_not(unfolded_await_shown(&unfolded, 0), "of any log");
    put(0, A, 7, 1, 5000);
    cr_expect(unfolded_await_shown(&unfolded, 0));
    cr_expect_eq(unfolded_shown(&unfolded, 0), 7u);
    unfolded_shows(&unfolded, 1, 9);
    unfolded_begin(&unfolded, 1, A);
    cr_expect(unfolded_await_shown(&unfolded, 0), "another log");
}

static unsigned n_told;

static void tell(void *data)
{
    (void)data;
    n_told++;
}

/* Put in an entry of one event that has @bytes. */
static void put_large(uint64_t n, size_t bytes)
{
    struct log_entry *entry = fold_entry(A, n, FOLD_NOW_S, 1);
    entry->packed.capacity = bytes; /* of which nobody reads or writes more than it has */
    cr_assert(unfolded_put(&unfolded, 0, entry));
    entry_release(entry);
}

Test(unfolded, what_waits_is_bounded_in_bytes_too, .init = setup, .fini = teardown)
{
    unfolded_on_room(&unfolded, tell, NULL);
    put_large(1, UNFOLDED_BYTES_MAX / 2);
    cr_expect_gt(unfolded_room(&unfolded, 0), 0u);
    put_large(2, UNFOLDED_BYTES_MAX / 2);
    cr_expect_eq(unfolded_room(&unfolded, 0), 0u);
    cr_expect_eq(n_told, 0u);
    unfolded_done(&unfolded, 0, A, 1);
    cr_expect_eq(n_told, 1u, "there is room again");
    cr_expect_gt(unfolded_room(&unfolded, 0), 0u);
    unfolded_done(&unfolded, 0, A, 2);
    cr_expect_eq(n_told, 1u, "nobody was told that it is full");
    cr_expect_eq(atomic_load(&core->stats.log_bytes), 0, "nothing waits");
}

Test(unfolded, another_log_makes_room, .init = setup, .fini = teardown)
{
    unfolded_on_room(&unfolded, tell, NULL);
    put_large(1, UNFOLDED_BYTES_MAX);
    cr_expect_eq(unfolded_room(&unfolded, 0), 0u);
    unfolded_begin(&unfolded, 0, B);
    cr_expect_eq(n_told, 1u);
    cr_expect_gt(unfolded_room(&unfolded, 0), 0u);
}
