/* One user did not do one action on one day: what is asked for, and what is answered. */
#include <criterion/criterion.h>

#include "storage/read/operation.h"
#include "storage/time/units.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(take_back, .timeout = 60);

#define TODAY (FOLD_NOW_S / DAY_S)

static struct core *core;
static struct reader reader;
static struct storage_job job;
static unsigned n_replies;
static int64_t change;   /* what clear_day.lua answers */
static unsigned lost_at; /* this reply never comes */

static void any_group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    (void)kind;
}

/* Of clear_day.lua and users_changed.lua, then the partition's state and the time. */
static const struct reply *dispatched(struct dispatcher *of)
{
    static struct reply replies[4];
    static struct reply state[2], time[2];
    (void)of;
    state[0] = fold_text(FOLD_CFG);
    state[1] = fold_text(NULL);
    time[0] = fold_text("1795187834");
    time[1] = fold_text("0");
    replies[0] = (struct reply){.type = REPLY_INTEGER, .integer = change};
    replies[1] = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    replies[2] = fold_array(state, 2);
    replies[3] = fold_array(time, 2);
    cr_assert_lt(n_replies, 4);
    return n_replies++ == lost_at ? NULL : &replies[n_replies - 1];
}

static enum storage_err take_back(int64_t day)
{
    bool lost = false;
    n_replies = 0;
    job = (struct storage_job){.op = STORAGE_TAKE_BACK, .deadline_ms = INT64_MAX / 2};
    job.u.take_back = (struct take_back_job){
        .site = SLICE("s"), .user = SLICE("u"), .action = SLICE("buy"), .day = day};
    return take_back_run(&reader, &job, &lost);
}

static void setup(void)
{
    core = fold_core_make(1);
    core->config.retention.keep_s[LEVEL_DAY] = 3 * DAY_S;
    reader.core = core;
    reader.session.dispatcher = &reader.dispatcher;
    stand_in.group = any_group;
    stand_in.dispatched = dispatched;
    change = 1;
    lost_at = 4;
}

static void teardown(void)
{
    buffer_release(&reader.dispatcher.bytes);
    fold_core_drop(core);
}

/* Answers that were remembered do not hold any more: partition 0 must know. */
Test(take_back, the_bit_is_cleared_and_all_are_told, .init = setup, .fini = teardown)
{
    cr_expect_eq(take_back(TODAY), STORAGE_OK, "%s", job.detail);
    cr_expect_eq(n_replies, 4u);
    cr_expect_not(job.u.take_back.sent, "nothing is in doubt");
}

Test(take_back, a_day_that_is_not_kept, .init = setup, .fini = teardown)
{
    cr_expect_eq(take_back(TODAY - 4), STORAGE_NOT_KEPT);
    cr_expect_eq(job.u.take_back.oldest_day, TODAY - 3);
    cr_expect_eq(take_back(TODAY - 3), STORAGE_OK);
}

Test(take_back, an_answer_that_does_not_come_leaves_a_doubt, .init = setup, .fini = teardown)
{
    lost_at = 0;
    cr_expect_eq(take_back(TODAY), STORAGE_UNKNOWN);
    cr_expect(job.u.take_back.sent);
}

Test(take_back, other_settings, .init = setup, .fini = teardown)
{
    change = -2;
    cr_expect_eq(take_back(TODAY), STORAGE_CONFIG);
    cr_expect_eq(n_replies, 1u);
}
