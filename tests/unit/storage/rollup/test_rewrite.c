/* When Redis is asked to rewrite its append-only file: storage/rollup/rewrite.h */
#include "storage/rollup/rewrite.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

#include "storage/time/units.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

#define DAY ((FOLD_NOW_S - REWRITE_HOUR * HOUR_S) / DAY_S) /* whose rewrite is due */

static struct core *core;
static struct session session;
static struct aof_rewriter rewriter;

static struct {
    int64_t day; /* of the last rewrite; 0: none */
    bool refuses;
    unsigned n_asked, n_rewrites;
} redis;

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply;
    static char text[24];
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i == 0 && commands.n == 1);
    const struct command *command = &commands.commands[0];
    reply = (struct reply){.type = REPLY_STATUS, .text = SLICE("OK")};
    redis.n_asked++;
    if (command_is(command, 0, "GET")) {
        (void)snprintf(text, sizeof(text), "%" PRId64, redis.day);
        reply = redis.day == 0 ? (struct reply){.type = REPLY_NIL}
                               : (struct reply){.type = REPLY_TEXT, .text = slice_of(text)};
    } else if (command_is(command, 0, "SET")) {
        redis.day = command_number(command, 2);
    } else {
        cr_assert(command_is(command, 0, "BGREWRITEAOF"));
        redis.n_rewrites += !redis.refuses;
        reply.type = redis.refuses ? REPLY_ERROR : REPLY_STATUS;
    }
    commands_release(&commands);
    return &reply;
}

static void setup(void)
{
    core = fold_core_make(1);
    core->config.aof_rewrite = true;
    atomic_store(&core->has_aof, true);
    stand_in.answer = answer;
    session.redis = stand_in_redis();
}

static void teardown(void)
{
    fold_core_drop(core);
}

TestSuite(rewrite, .init = setup, .fini = teardown, .timeout = 60);

static void look(void)
{
    redis.n_asked = redis.n_rewrites = 0;
    cr_assert(aof_rewrite_look(&rewriter, core, &session, 0));
}

/* The clock of a process may be some seconds late, and say the day before. */
Test(rewrite, once_a_day_whoever_leads)
{
    static const struct {
        int64_t day;
        unsigned rewrites;
    } cases[] = {{0, 1}, {DAY - 1, 1}, {DAY, 0}, {DAY + 1, 0}, {DAY + 2, 1}, {DAY + 400, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rewriter = (struct aof_rewriter){0};
        redis.day = cases[i].day;
        look();
        cr_expect_eq(redis.n_rewrites, cases[i].rewrites, "case %zu", i);
        cr_expect_eq(redis.day, cases[i].rewrites > 0 ? DAY : cases[i].day, "case %zu", i);
        cr_expect_eq(rewriter.due_s, (DAY + 1) * DAY_S + REWRITE_HOUR * HOUR_S);
        look();
        cr_expect_eq(redis.n_asked, 0u, "it is not due");
    }
}

Test(rewrite, what_redis_refuses_is_asked_for_again_soon)
{
    redis.refuses = true;
    look();
    cr_expect_eq(redis.day, 0);
    cr_expect_eq(rewriter.due_s, FOLD_NOW_S + REWRITE_AGAIN_S);
}

Test(rewrite, a_clock_that_was_set_back_for_days_is_no_reason_to_wait)
{
    rewriter.due_s = FOLD_NOW_S + DAY_S - 1;
    look();
    cr_expect_eq(redis.n_asked, 0u);
    rewriter.due_s = FOLD_NOW_S + DAY_S;
    look();
    cr_expect_eq(redis.n_rewrites, 1u);
}

Test(rewrite, not_where_there_is_no_such_file_or_nobody_wants_it)
{
    atomic_store(&core->has_aof, false);
    look();
    cr_expect_eq(redis.n_asked, 0u);
    atomic_store(&core->has_aof, true);
    core->config.aof_rewrite = false;
    look();
    cr_expect_eq(redis.n_asked, 0u);
}
