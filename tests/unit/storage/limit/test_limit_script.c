/* Jobs as the words of a call, and its reply as their state.  storage/limit/limit_script.h */
#include "storage/limit/limit_script.h"

#include <criterion/criterion.h>

#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/reply_notation.h"

#define JOBS  2
#define CALL  3 /* EVALSHA, the script, the number of keys */
#define WORDS 6 /* of a run of funnels */

static struct core *core;
static struct storage_job jobs[JOBS];
static struct buffer out;
static struct commands calls;

/* Two that ask for the same. */
static void setup(void)
{
    core = fold_core_make(1);
    buffer_init(&out);
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = (struct storage_job){.op = STORAGE_LIMIT};
        jobs[i].u.limit = (struct limit_job){
            .limit = {LIMIT_FUNNEL, .count = 5, .period_us = 1000000, .burst = 9},
            .key = i == 0 ? SLICE("ann") : SLICE("bob"),
            .need = 2,
            .want = 3};
    }
}

static void teardown(void)
{
    commands_release(&calls);
    buffer_release(&out);
    fold_core_drop(core);
}

TestSuite(limit_script, .init = setup, .fini = teardown, .timeout = 60);

static const struct command *write_jobs(void)
{
    static const struct script_digests digests;
    struct storage_job *both[JOBS] = {&jobs[0], &jobs[1]};
    commands_release(&calls);
    buffer_clear(&out, SIZE_MAX);
    limit_script_write(
        &out, &digests, &core->partitions, limit_script_of(&jobs[0].u.limit), both, JOBS);
    cr_assert(commands_read(&out, &calls));
    cr_assert_eq(calls.n, 1u);
    return &calls.commands[0];
}

Test(limit_script, jobs_that_ask_for_the_same_share_their_words)
{
    const struct command *call = write_jobs();
    cr_assert_eq(call->n, (size_t)(CALL + JOBS + WORDS));
    cr_expect_eq(command_number(call, 2), JOBS);
    cr_expect_eq(command_number(call, CALL + JOBS), 2, "jobs of the run");
    cr_expect_eq(command_number(call, CALL + JOBS + 3), 10, "capacity");
    cr_expect_eq(command_number(call, CALL + JOBS + 4), 2);
    cr_expect_eq(command_number(call, CALL + JOBS + 5), 3);
}

/* Otherwise one would be judged by the limit of the other. */
Test(limit_script, whatever_differs_begins_another_run)
{
    static struct limit_set sets[JOBS] = {{.n = 1}, {.n = 1}};
    for (int what = 0; what < 5; what++) {
        teardown();
        setup();
        struct limit_job *second = &jobs[1].u.limit;
        second->limit.burst += what == 0;
        second->limit.count += what == 1;
        second->limit.period_us += what == 2;
        second->need += what == 3;
        second->want += what == 4;
        const struct command *call = write_jobs();
        cr_assert_eq(call->n, (size_t)(CALL + JOBS + 2 * WORDS), "%d", what);
        cr_expect_eq(command_number(call, CALL + JOBS), 1);
        cr_expect_eq(command_number(call, CALL + JOBS + WORDS), 1);
        cr_expect_eq(command_number(call, CALL + JOBS + WORDS + 4), second->need);
        cr_expect_eq(command_number(call, CALL + JOBS + WORDS + 5), second->want);
    }
    for (size_t i = 0; i < JOBS; i++) { /* of two policies */
        sets[i].limits[0] = (struct limit){LIMIT_FUNNEL, .count = 1, .period_us = 1000000};
        jobs[i].u.limit.set = &sets[i];
        jobs[i].u.limit.want = jobs[i].u.limit.need = 1;
    }
    cr_expect_eq(write_jobs()->n, (size_t)(CALL + JOBS + 2 * (3 + 4)));
}

/* A limit that was forgotten here would go on to refuse. */
Test(limit_script, a_reset_names_each_key_once)
{
    struct slice policies[] = {SLICE(""), SLICE("login")};
    const struct limit_reset_job reset = {SLICE("k"), policies, 2};
    limit_script_write_reset(&out, &core->partitions, &reset);
    cr_assert(commands_read(&out, &calls));
    const struct command *call = &calls.commands[0];
    cr_assert(calls.n == 1 && call->n == 1 + 2 * (2 * LIMIT_SET_MAX + 1));
    for (size_t i = 1; i < call->n; i++) {
        for (size_t k = 1; k < i; k++) {
            cr_expect_not(slice_equal(call->words[i], call->words[k]), "%zu and %zu", i, k);
        }
    }
}

/* ---- replies ---- */

static struct limit_state state_of(struct limit_job *job, const char *values)
{
    struct arena arena = {0};
    const struct reply *reply = reply_read(&arena, slice_of(values));
    cr_assert(reply != NULL && reply->type == REPLY_ARRAY);
    limit_script_read(job, reply->items);
    arena_release(&arena);
    return job->state;
}

Test(limit_script, a_reply_says_how_the_limit_stands)
{
    static const struct limit_set set = {.n = 2};
    struct limit_job *job = &jobs[0].u.limit;
    struct limit_state state = state_of(job, "[2, 7, 0, 9]");
    cr_expect(state.allowed && !state.penalised && state.granted == 2 && state.remaining == 7);
    cr_expect(state.retry_us == 0 && state.reset_us == 9);
    state = state_of(job, "[-1, 1, 8, 9]");
    cr_expect(!state.allowed && !state.penalised && state.granted == 0 && state.retry_us == 8);
    job->set = &set;
    state = state_of(job, "[-2, 0, 8, 9, 1]");
    cr_expect(!state.allowed && state.penalised && state.granted == 0 && state.strictest == 1);
    cr_expect_eq(state_of(job, "[0, 0, 8, 9, 2]").strictest, 0u, "there is no such limit");
    job->set = NULL;
    job->need = -3;
    state = state_of(job, "[-3, 9, 0, 0]");
    cr_expect(state.allowed && state.granted == 0, "what is given back is never refused");
}
