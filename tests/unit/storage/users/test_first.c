/* When it is told which actions were first: not before that is sure. */
#include "storage/read/operation.h"

#include <criterion/criterion.h>

#include "storage/base/clock.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(first, .timeout = 60);

static struct core *core;
static struct reader reader;
static struct storage_job job;
static const char *note; /* what Redis has; NULL: nothing */

static void group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    (void)kind;
}

static const struct reply *dispatched(struct dispatcher *of)
{
    static struct reply reply;
    (void)of;
    reply = fold_text(note);
    return &reply;
}

/* A connection that stands, and a Redis that goes back by @go_back_ms if it crashes. */
static void begin(int64_t go_back_ms, uint8_t ack_replicas)
{
    core = fold_core_make(1);
    core->config.ack_replicas = ack_replicas;
    atomic_store(&core->go_back_ms, go_back_ms);
    standing_init(&core->standing, ack_replicas > 0);
    standing_begin(&core->standing, monotonic_ms() - 1000);
    reader.core = core;
    reader.session.dispatcher = &reader.dispatcher;
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    job = (struct storage_job){.op = STORAGE_FIRST, .deadline_ms = INT64_MAX};
}

static void end(void)
{
    buffer_release(&reader.dispatcher.bytes);
    arena_release(&job.u.first.arena);
    fold_core_drop(core);
}

/* Read the notes.  Is the answer there? */
static bool is_told(void)
{
    bool lost = false;
    cr_assert_eq(first_run(&reader, &job, &lost), STORAGE_OK);
    cr_assert_not(lost);
    return job.held_to_ms == 0;
}

Test(first, at_once_where_nothing_can_be_lost)
{
    begin(0, 0);
    cr_expect(is_told());
    cr_expect_eq(job.u.first.n_found, 0);
    end();
}

Test(first, when_the_same_was_read_behind_the_time_that_redis_can_lose)
{
    begin(2000, 0);
    cr_expect_not(is_told());
    cr_expect_geq(job.held_to_ms, monotonic_ms() + 1000);
    cr_expect_not(is_told(), "nothing has answered since");
    standing_answered(&core->standing, job.held_to_ms);
    cr_expect(is_told());
    end();
}

/* The fold that wrote the note is younger than the request that replicas have. */
Test(first, when_replicas_have_what_was_read)
{
    begin(0, 1);
    cr_expect_not(is_told());
    standing_answered(&core->standing, job.held_to_ms);
    cr_expect_not(is_told());
    standing_acked(&core->standing, job.held_to_ms);
    standing_answered(&core->standing, job.held_to_ms);
    cr_expect(is_told());
    end();
}
