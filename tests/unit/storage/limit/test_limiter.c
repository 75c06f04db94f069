/* Jobs in, scripts out, replies to jobs.  storage/limit/limiter.h */
#include "storage/limit/limiter.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/reply_notation.h"

#define JOBS_MAX 8

static struct core *core;
static struct limiter limiter;
static struct session session;
static struct arena arena;
static struct storage_job jobs[JOBS_MAX];
static int ended[JOBS_MAX]; /* an enum storage_err; -1: not yet */

static void on_done(struct storage_job *job)
{
    cr_expect_eq(ended[job - jobs], -1, "once");
    ended[job - jobs] = (int)job->err;
}

static void setup(void)
{
    core = fold_core_make(1);
    limiter_init(&limiter, core);
}

static void teardown(void)
{
    limiter_release(&limiter);
    arena_release(&arena);
    fold_core_drop(core);
}

TestSuite(limiter, .init = setup, .fini = teardown, .timeout = 60);

/* Send jobs 0 to @n - 1: those of @funnels are funnels, the others sliding limits.  Returns how
 * many calls were written. */
static size_t send(size_t n, unsigned funnels)
{
    struct commands calls;
    for (size_t i = 0; i < n; i++) {
        ended[i] = -1;
        jobs[i] = (struct storage_job){.op = STORAGE_LIMIT,
            .done = on_done,
            .deadline_ms = 1000 * (int64_t)(i + 1),
            .next = i + 1 < n ? &jobs[i + 1] : NULL};
        jobs[i].u.limit = (struct limit_job){
            .limit = {.algorithm = LIMIT_SLIDING, .count = 5, .period_us = 1000000},
            .key = SLICE("k"),
            .need = 1,
            .want = 1};
        if ((funnels >> i & 1) != 0) {
            jobs[i].u.limit.limit.algorithm = LIMIT_FUNNEL;
        }
    }
    cr_assert(limiter_write(&limiter, &session, jobs));
    cr_assert(commands_read(&limiter.out, &calls));
    size_t n_calls = calls.n;
    commands_release(&calls);
    return n_calls;
}

static bool take(const char *text)
{
    const struct reply *reply = reply_read(&arena, slice_of(text));
    cr_assert_not_null(reply, "%s", text);
    return limiter_take_reply(&limiter, reply);
}

/* The jobs of limiter.again, as bits; they are taken out. */
static unsigned taken_again(void)
{
    unsigned found = 0;
    for (struct storage_job *job = job_queue_take(&limiter.again, SIZE_MAX); job != NULL;
         job = job->next) {
        found |= 1u << (job - jobs);
    }
    return found;
}

Test(limiter, jobs_of_one_script_share_a_call)
{
    cr_expect_eq(send(4, 5), 2, "a call for funnels, and one for sliding limits");
    cr_expect(take("[1, 2, 1,3,0,7, -1,0,8,9]"));
    cr_expect(limiter_awaits(&limiter));
    cr_expect(take("[1, 2, 1,1,0,2, 1,0,0,3]"));
    cr_expect_not(limiter_awaits(&limiter));
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(ended[i], STORAGE_OK, "%zu", i);
    }
    cr_expect(jobs[0].u.limit.state.allowed && jobs[0].u.limit.state.remaining == 3);
    cr_expect(!jobs[2].u.limit.state.allowed && jobs[2].u.limit.state.retry_us == 8);
    cr_expect_eq(jobs[1].u.limit.state.reset_us, 2);
    cr_expect_eq(jobs[3].u.limit.state.reset_us, 3);
    cr_expect_eq(atomic_load(&core->stats.limit_denied), 1);
}

Test(limiter, what_an_error_means)
{
    static const struct {
        const char *reply;
        bool stands; /* the connection */
        bool again;
        enum storage_err err;
    } rows[] = {
        {"!'NOSCRIPT No matching script'", false, true, 0},
        {"!'READONLY a replica'", false, true, 0},
        {"!'LOADING Redis is loading'", true, true, 0},
        {"!'BUSY a script'", true, true, 0},
        {"!'TRYAGAIN'", true, true, 0},
        {"!'OOM command not allowed'", true, false, STORAGE_OOM},
        {"!'NOPERM this user'", true, false, STORAGE_REFUSED},
        {"!'WRONGTYPE half way'", true, false, STORAGE_UNKNOWN},
        {"!'ERR Error running script'", true, false, STORAGE_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)send(2, 3);
        cr_expect_eq(take(rows[i].reply), rows[i].stands, "%s", rows[i].reply);
        cr_expect_eq(taken_again(), rows[i].again ? 3 : 0, "%s", rows[i].reply);
        for (size_t job = 0; job < 2; job++) {
            cr_expect_eq(ended[job], rows[i].again ? -1 : (int)rows[i].err, "%s", rows[i].reply);
        }
    }
}

/* Whoever watches /readyz and /metrics learns what Redis refuses. */
Test(limiter, an_error_is_noted)
{
    (void)send(1, 1);
    (void)take("!'NOPERM this user'");
    cr_expect_eq(atomic_load(&core->stats.redis_errors), 1);
    cr_expect_eq(atomic_load(&core->stats.redis_oom), 0);
    uint64_t fault = atomic_load(&core->write_fault);
    cr_expect_neq(fault, 0u);
    (void)send(1, 1);
    (void)take("!'TRYAGAIN'");
    cr_expect_eq(atomic_load(&core->stats.redis_errors), 2);
    cr_expect_eq(atomic_load(&core->write_fault), fault, "a slot is being moved");
    (void)taken_again();
    (void)send(1, 1);
    (void)take("!'OOM command not allowed'");
    cr_expect_eq(atomic_load(&core->stats.redis_oom), 1);
    cr_expect_neq(atomic_load(&core->write_fault), fault);
}

/* The guard's leases are nobody's questions. */
Test(limiter, a_lease_counts_as_no_limit_that_was_asked_for)
{
    (void)send(2, 3);
    jobs[1].u.limit.guard = true;
    cr_assert(take("[1, 2, -1,0,5,7, -1,0,5,7]"));
    cr_expect_eq(atomic_load(&core->stats.limit_checks), 1);
    cr_expect_eq(atomic_load(&core->stats.limit_denied), 1);
}

Test(limiter, replies_that_are_none)
{
    static const char *const replies[] = {"[]", "[1, 2, 1,3,0]", "'text'", "7", "null"};
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        (void)send(1, 1);
        cr_expect_not(take(replies[i]), "%s", replies[i]);
        cr_expect_eq(ended[0], STORAGE_UNKNOWN, "%s", replies[i]);
    }
    cr_expect_not(take("[1, 2, 1,3,0,7]"), "nobody has asked");
}

Test(limiter, a_lost_connection_leaves_in_doubt_what_was_not_answered)
{
    (void)send(3, 4);
    cr_expect(take("[1, 2, 1,3,0,7]"));
    limiter_end(&limiter, STORAGE_UNKNOWN);
    cr_expect_not(limiter_awaits(&limiter));
    cr_expect_eq(ended[2], STORAGE_OK);
    cr_expect(ended[0] == STORAGE_UNKNOWN && ended[1] == STORAGE_UNKNOWN);
}

Test(limiter, what_could_not_be_sent_is_not_in_doubt)
{
    (void)send(2, 1);
    limiter_end(&limiter, STORAGE_NOMEM);
    cr_expect_not(limiter_awaits(&limiter));
    cr_expect(ended[0] == STORAGE_NOMEM && ended[1] == STORAGE_NOMEM);
}

Test(limiter, each_job_has_its_own_deadline)
{
    (void)send(3, 7);
    limiter_answer_late(&limiter, 1999);
    cr_expect(ended[0] == STORAGE_UNKNOWN && ended[1] == -1 && ended[2] == -1);
    cr_expect_null(limiter_first(&limiter), "its reply comes all the same");
    cr_expect(take("!'BUSY a script'"));
    cr_expect_eq(ended[0], STORAGE_UNKNOWN);
    limiter_answer_late(&limiter, 2000);
    cr_expect(ended[1] == STORAGE_LATE && ended[2] == -1, "nothing of it was done");
    cr_expect_eq(taken_again(), 4);
}

Test(limiter, a_reset_is_a_call_of_its_own)
{
    struct commands calls;
    struct slice policies[] = {SLICE(""), SLICE("login")};
    ended[0] = -1;
    jobs[0] = (struct storage_job){.op = STORAGE_LIMIT_RESET, .done = on_done};
    jobs[0].u.limit_reset = (struct limit_reset_job){SLICE("k"), policies, 2};
    cr_assert(limiter_write(&limiter, &session, jobs));
    cr_assert(commands_read(&limiter.out, &calls));
    cr_expect(calls.n == 1 && command_is(&calls.commands[0], 0, "UNLINK"));
    commands_release(&calls);
    cr_expect(take("2"));
    cr_expect_eq(ended[0], STORAGE_OK);
}
