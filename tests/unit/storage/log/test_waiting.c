#include "storage/log/waiting.h"
#include "storage/log/unfolded.h"

#include <criterion/criterion.h>
#include <string.h>

#include "storage/base/clock.h"
#include "tests/lib/commands.h"
#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

/* When the entries in memory are all that is not counted.  If they are not, the question waits as
 * any other: here that is seen by the connection, of which that wait finds that there is none. */

#define OWN   "00000000000000aa"
#define OTHER "00000000000000bb"

static struct core *core;
static struct unfolded unfolded;
static struct reader reader;
static struct storage_job job;
static int64_t acknowledged_us;

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply, items[FAKE_STREAMS];
    struct commands commands;
    const struct reply *result = &reply;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    if (command_is(command, 0, "HGETALL")) {
        result = fake_streams_heads(); /* of the era "e" */
    } else {
        cr_assert(command_is(command, 0, "HMGET"));
        for (size_t w = 2; w < command->n; w++) {
            size_t l = command_is(command, w, OWN) ? 0 : 1;
            items[w - 2] = fold_text(fake_streams.logs[l].cursor);
        }
        reply = fold_array(items, command->n - 2);
    }
    commands_release(&commands);
    return result;
}

static void setup(void)
{
    core = fold_core_make(2);
    acknowledged_us = monotonic_us();
    unfolded_init(&unfolded, &core->stats);
    unfolded_begin(&unfolded, 0, OWN);
    core->unfolded = &unfolded;
    reader.core = core;
    reader.session = (struct session){.core = core, .opened_us = 7};
    job = (struct storage_job){.arrived_us = 10, .deadline_ms = INT64_MAX};
    stand_in.answer = answer;
    (void)fake_streams_add(OWN, 4);
    fake_streams.logs[0].cursor = "2";
}

static void teardown(void)
{
    settled_release(&reader.settled);
    unfolded_release(&unfolded);
    fold_core_drop(core);
}

/* Entry @n was answered, over a connection of @era. */
static void acknowledge(uint64_t n, const char *era)
{
    struct log_entry *entry = fold_entry(OWN, n, FOLD_NOW_S, 1);
    memcpy(entry->era, era, strlen(era) + 1);
    entry->acknowledged_us = acknowledged_us;
    cr_assert(unfolded_put(&unfolded, 0, entry));
    entry_release(entry);
}

static void expect(bool covered)
{
    struct waiting waiting = {0};
    bool lost = false;
    waiting_take(&waiting, core, WAITING_ALL);
    enum storage_err err = waiting_await(&waiting, &reader, &job, &lost);
    cr_expect_eq(err, covered ? STORAGE_OK : STORAGE_DOWN, "%d", (int)err);
    cr_expect_eq(lost, !covered);
    waiting_release(&waiting);
}

TestSuite(waiting, .init = setup, .fini = teardown);

Test(waiting, all_that_is_not_counted_is_in_memory)
{
    acknowledge(3, "e");
    acknowledge(4, "e");
    expect(true);
}

Test(waiting, what_is_counted_already_does_no_harm)
{
    acknowledge(2, "e");
    acknowledge(3, "e");
    acknowledge(4, "e");
    expect(true);
}

Test(waiting, an_entry_that_memory_lacks)
{
    acknowledge(4, "e");
    expect(false);
}

/* Redis went back, and the number has something else now. */
Test(waiting, an_entry_of_another_era)
{
    acknowledge(3, "x");
    acknowledge(4, "e");
    expect(false);
}

Test(waiting, what_another_process_took)
{
    acknowledge(3, "e");
    acknowledge(4, "e");
    (void)fake_streams_add(OTHER, 1);
    expect(false);
    fake_streams.logs[1].cursor = "1";
    expect(true);
}

Test(waiting, what_was_acknowledged_later_is_not_waited_for)
{
    acknowledge(3, "e");
    acknowledge(4, "e");
    fake_streams.logs[0].n = 6;
    expect(true);
}

/* The entry has a request with a key.  Whoever repeats that request is told by its record that it
 * was accepted, before this process has the answer. */
Test(waiting, what_a_record_may_have_acknowledged)
{
    acknowledge(3, "e");
    unfolded_shows(&unfolded, 0, 4);
    expect(false);
    acknowledge(4, "e");
    expect(true);
}

/* Another process may have counted it, and deleted it with its site. */
Test(waiting, what_has_waited_for_long)
{
    acknowledged_us -= 2000000;
    acknowledge(3, "e");
    acknowledged_us += 2000000;
    acknowledge(4, "e");
    expect(false);
}

Test(waiting, nothing_is_looked_for_where_a_site_is_being_deleted)
{
    acknowledge(3, "e");
    acknowledge(4, "e");
    atomic_store(&core->deletions.n, 1);
    expect(false);
}

/* ---- looking ---- */

struct tally {
    size_t n, enough;
};

static void count_event(void *data, const struct chunk_event *event)
{
    struct tally *tally = data;
    cr_expect(slice_equal(event->user, SLICE("ann")));
    tally->n++;
}

static bool is_enough(const void *data)
{
    const struct tally *tally = data;
    return tally->n >= tally->enough;
}

/* How many events of the user "ann" are found in the @most newest entries; each entry has one. */
static size_t found(size_t most, size_t enough, const char *user)
{
    struct waiting waiting = {0};
    struct tally tally = {.enough = enough};
    waiting_take(&waiting, core, most);
    cr_expect(
        waiting_find(&waiting, SLICE("shop"), slice_of(user), count_event, is_enough, &tally));
    waiting_release(&waiting);
    return tally.n;
}

Test(waiting, the_newest_are_looked_at_first_and_alone)
{
    enum { ENTRIES = 100, NEWEST = WAITING_NEWEST };
    struct waiting waiting = {0};
    for (uint64_t n = 1; n <= ENTRIES; n++) {
        acknowledge(n, "e");
    }
    waiting_take(&waiting, core, WAITING_NEWEST);
    cr_assert_eq(waiting.n, (size_t)NEWEST);
    cr_expect_eq(waiting.entries[0]->n, ENTRIES - NEWEST + 1u);
    cr_expect_eq(waiting.entries[NEWEST - 1]->n, (uint64_t)ENTRIES);
    waiting_release(&waiting);
    cr_expect_eq(found(WAITING_NEWEST, SIZE_MAX, "ann"), (size_t)NEWEST);
    cr_expect_eq(found(WAITING_ALL, SIZE_MAX, "ann"), (size_t)ENTRIES);
    cr_expect_eq(found(WAITING_ALL, 1, "ann"), 1u);
    cr_expect_eq(found(WAITING_ALL, 0, "ann"), 0u);
    cr_expect_eq(found(WAITING_ALL, SIZE_MAX, "bob"), 0u);
    core->is_spread = true;
    cr_expect_eq(found(WAITING_NEWEST, SIZE_MAX, "ann"), 0u, "a server can go back alone");
    core->is_spread = false;
    atomic_store(&core->deletions.n, 1);
    cr_expect_eq(found(WAITING_NEWEST, SIZE_MAX, "ann"), 0u, "a site is being deleted");
    atomic_store(&core->deletions.n, 0);
}

/* Another process may have counted them, and deleted them with their site. */
Test(waiting, the_newest_that_have_waited_for_long)
{
    acknowledged_us = monotonic_us() - INT64_C(2100000);
    acknowledge(3, "e");
    cr_expect_eq(found(WAITING_NEWEST, SIZE_MAX, "ann"), 0u);
}
