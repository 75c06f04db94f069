/* What a request to delete writes down, and what a question about a deletion learns. */
#include <criterion/criterion.h>

#include "storage/read/operation.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(deletion_ask, .timeout = 60);

#define ID "0123456789abcdef"

static struct dispatcher dispatcher;
static const char *record; /* of the deletion that is asked for; NULL: there is none */
static int64_t n_records;
static char written[8];  /* how the record was written: HSET, HSETNX, or not at all */
static unsigned n_lists; /* how often the list was read */

static void group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    (void)kind;
}

static const struct reply *number(int64_t value)
{
    static struct reply reply;
    reply = (struct reply){.type = REPLY_INTEGER, .integer = value};
    return &reply;
}

/* The reply to the next command of those that were begun. */
static const struct reply *dispatched(struct dispatcher *of)
{
    static struct reply reply, items[2];
    static size_t next;
    struct commands commands;
    cr_assert(commands_read(&of->bytes, &commands) && next < commands.n);
    const struct command *c = &commands.commands[next++];
    reply = (struct reply){.type = REPLY_NIL};
    if (command_is(c, 0, "SISMEMBER")) {
        reply = *number(1);
    } else if (command_is(c, 0, "TIME")) {
        items[0] = fold_text("1000");
        items[1] = fold_text("0");
        reply = fold_array(items, 2);
    } else if (command_is(c, 0, "HGET") && record != NULL && !command_is(c, 2, "over")) {
        reply = fold_text(record);
    } else if (command_is(c, 0, "HLEN")) {
        reply = *number(n_records);
    } else if (command_is(c, 0, "HGETALL")) {
        n_lists++;
        reply = fold_array(NULL, 0);
    } else if (command_is(c, 0, "EVALSHA")) {
        memcpy(written, c->words[4].p, c->words[4].n);
        reply = *number(1);
    }
    commands_release(&commands);
    return &reply;
}

/* Run the operation for a site that has had events. */
static enum storage_err run(
    enum storage_err (*operation)(struct reader *, struct storage_job *, bool *),
    struct storage_job *job)
{
    static struct reader reader;
    struct core *core = fold_core_make(1);
    bool lost = false;
    reader = (struct reader){.core = core, .session = {.dispatcher = &dispatcher}};
    *job = (struct storage_job){.deadline_ms = INT64_MAX / 2};
    job->u.deletion.target.site = SLICE("s");
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    enum storage_err err = operation(&reader, job, &lost);
    buffer_release(&dispatcher.bytes);
    fold_core_drop(core);
    return err;
}

Test(deletion_ask, the_first_request_is_written_down)
{
    struct storage_job job;
    cr_expect_eq(run(deletion_start_run, &job), STORAGE_OK, "%s", job.detail);
    cr_expect_str_eq(written, "HSETNX", "what another request has written stays");
    cr_expect(job.u.deletion.deleting && n_lists == 1);
}

/* The record of a deletion stands a little longer than the deletion takes.  Events that have come
 * since are deleted by another one. */
Test(deletion_ask, a_record_that_is_over_is_replaced)
{
    struct storage_job job;
    record = ID " 9900 999999";
    n_records = DELETIONS_MAX;
    cr_expect_eq(run(deletion_start_run, &job), STORAGE_OK, "%s", job.detail);
    cr_expect_str_eq(written, "HSET");
    cr_expect(job.u.deletion.deleting);
}

Test(deletion_ask, a_record_whose_instant_is_ahead_stays)
{
    struct storage_job job;
    record = ID " 9900 1000001";
    cr_expect_eq(run(deletion_start_run, &job), STORAGE_OK, "%s", job.detail);
    cr_expect_str_eq(written, "");
    cr_expect(job.u.deletion.deleting && job.u.deletion.done > 0);
}

Test(deletion_ask, one_less_than_the_most)
{
    struct storage_job job;
    n_records = DELETIONS_MAX - 1;
    cr_expect_eq(run(deletion_start_run, &job), STORAGE_OK, "%s", job.detail);
    cr_expect_str_eq(written, "HSETNX");
}

Test(deletion_ask, one_more_than_the_most)
{
    struct storage_job job;
    n_records = DELETIONS_MAX;
    cr_expect_eq(run(deletion_start_run, &job), STORAGE_FULL);
    cr_expect_str_eq(written, "");
    cr_expect_not(job.u.deletion.deleting);
}

/* Whoever is told that a deletion is over may send events to this process at once. */
Test(deletion_ask, the_end_is_learnt_before_it_is_told)
{
    struct storage_job job;
    record = ID " 9900 999999";
    cr_expect_eq(run(deletion_look_run, &job), STORAGE_OK, "%s", job.detail);
    cr_expect_not(job.u.deletion.deleting);
    cr_expect_eq(n_lists, 1u);
}
