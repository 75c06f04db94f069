/* When an appender sends its next heartbeat. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/core/core.h"
#include "storage/log/append.h"

#define BEAT  6000 /* the last one, CLOCK_MONOTONIC in ms */
#define IDLE  (BEAT + 5000)
#define PROOF (BEAT + 250)

static struct core *core;
static struct unfolded unfolded;
static struct appender appender;
static struct log_entry entry;

static void setup(void)
{
    core = calloc(1, sizeof(*core));
    cr_assert_not_null(core);
    core_init(core);
    partitions_make(1, &core->partitions);
    unfolded_init(&unfolded, &core->stats);
    appender_init(&appender, core, 0, &unfolded);
    appender.beat_ms = BEAT;
}

static void teardown(void)
{
    appender.first = NULL; /* the test's own */
    appender_release(&appender);
    unfolded_release(&unfolded);
    core_release(core);
    free(core);
}

TestSuite(append_send, .timeout = 60, .init = setup, .fini = teardown);

static void expect(int64_t due_ms)
{
    int64_t is_ms = appender_due_ms(&appender, BEAT);
    cr_expect_eq(is_ms, due_ms, "%lld, not %lld", (long long)is_ms, (long long)due_ms);
}

/* Its answer proves that an entry is safe, which is held until then. */
Test(append_send, a_heartbeat_is_soon_due_while_entries_are_held)
{
    atomic_store(&core->go_back_ms, 2000);
    expect(IDLE);
    appender.first = &entry;
    expect(PROOF);
    atomic_store(&core->go_back_ms, 0);
    expect(IDLE);
    core->hold_ms = 10000; /* of a failover, whatever Redis's disk has */
    expect(PROOF);
}

Test(append_send, a_heartbeat_is_due_when_somebody_wants_to_know)
{
    standing_want(&core->standing, BEAT);
    expect(PROOF); /* the last one was sent then, and its answer may be on the way */
    standing_want(&core->standing, BEAT + 100);
    expect(BEAT + 100);
    standing_want(&core->standing, BEAT + 1000);
    expect(PROOF);
    standing_answered(&core->standing, BEAT + 1000);
    expect(IDLE);
}
