/* What a guard asks Redis for, and what it tells of a limit: storage/limit/lease.h, funnel.h. */
#include "storage/limit/lease.h"

#include <criterion/criterion.h>

#include "storage/limit/guard.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

#define SECOND_US  INT64_C(1000000)
#define CAPACITY   64
#define LEASE      2     /* 1/32 of it */
#define PAUSE_US   75000 /* the longest after Redis had nothing left */
#define SENT_MAX   16
#define DEADLINE_S 5

static struct core *core;
static struct guard *guard;
static int64_t now_us;
static struct storage_job *sent[SENT_MAX]; /* leases, and jobs that go on */
static size_t n_sent;

static int64_t clock_us(void)
{
    return now_us;
}

static bool submit(void *data, struct storage_job *job, enum storage_err *ret_err)
{
    (void)data;
    (void)ret_err;
    cr_assert_lt(n_sent, SENT_MAX);
    sent[n_sent++] = job;
    return true;
}

static void on_done(struct storage_job *job)
{
    (void)job;
}

/* 64 events can pass at once, and one comes back in a second. */
static void setup(void)
{
    core = fold_core_make(1);
    core->config.guard_by = GUARD_SITE;
    core->config.guard_limit =
        (struct limit){LIMIT_FUNNEL, .count = 1, .period_us = SECOND_US, .burst = CAPACITY - 1};
    now_us = 1000 * SECOND_US;
    stand_in.now_us = clock_us;
    guard = guard_new(core, submit, NULL);
    cr_assert_not_null(guard);
    cr_assert_eq(guard->lease, LEASE);
}

static void teardown(void)
{
    guard_free(guard);
    fold_core_drop(core);
}

TestSuite(lease, .init = setup, .fini = teardown, .timeout = 60);

static struct storage_job write_of(const struct guard_charge *charges, size_t n_charges)
{
    struct storage_job job = {
        .op = STORAGE_WRITE, .deadline_ms = now_us / 1000 + DEADLINE_S * 1000, .done = on_done};
    job.u.write.charges = charges;
    job.u.write.n_charges = n_charges;
    return job;
}

/* Redis answers lease @i: it grants @granted, @remaining are left, and all is free in @reset_us. */
static void answer(size_t i, int64_t granted, int64_t remaining, int64_t reset_us)
{
    cr_assert_lt(i, n_sent);
    sent[i]->u.limit.state = (struct limit_state){
        .allowed = granted > 0, .granted = granted, .remaining = remaining, .reset_us = reset_us};
    job_done(sent[i], STORAGE_OK);
}

/* Have an event of site "a" ask for a lease, which Redis answers.  A lease that is asked for ahead
 * is sent[0] then. */
static void begin(int64_t granted, int64_t remaining, int64_t reset_us)
{
    static struct guard_charge charge = {{"a", 1}, 1};
    static struct storage_job job;
    job = write_of(&charge, 1);
    guard_submit(guard, &job);
    cr_assert_eq(n_sent, 1, "a lease is asked for");
    answer(0, granted, remaining, reset_us);
    n_sent = granted > 0 ? n_sent - 2 : 0; /* without the first lease and the event */
    sent[0] = sent[1];
}

static enum guard_verdict try_events(int64_t n, struct limit_state *ret_state)
{
    struct guard_charge charge = {SLICE("a"), n};
    return guard_try(guard, &charge, 1, ret_state);
}

/* ---- what is told ---- */

/* Redis counts a lease as used up, but what is left of the lease can still be had. */
Test(lease, what_is_left_of_a_lease_is_told_as_free)
{
    struct limit_state state;
    begin(5, CAPACITY - 10, 10 * SECOND_US); /* one of the five is gone */
    guard_peek(guard, SLICE("a"), &state);
    cr_expect_eq(state.remaining, CAPACITY - 10 + 4);
    cr_expect_eq(state.reset_us, 6 * SECOND_US);
    now_us += SECOND_US / 2;
    guard_peek(guard, SLICE("a"), &state);
    cr_expect_eq(state.remaining, CAPACITY - 10 + 4, "half an event is none");
    cr_expect_eq(state.reset_us, 5 * SECOND_US + SECOND_US / 2);
}

Test(lease, the_wait_is_for_what_the_lease_lacks)
{
    struct limit_state state;
    begin(3, 1, CAPACITY * SECOND_US); /* two are left */
    cr_expect_eq(try_events(5, &state), GUARD_REFUSED);
    cr_expect_eq(state.retry_us, 3 * SECOND_US + 1);
}

/* Other processes may have given leases back. */
Test(lease, a_refusal_is_believed_for_a_second)
{
    struct limit_state state;
    begin(0, 0, (CAPACITY + 10) * SECOND_US);
    now_us += SECOND_US - 1;
    cr_expect_eq(try_events(1, &state), GUARD_REFUSED);
    now_us++;
    cr_expect_eq(try_events(1, &state), GUARD_ASK);
}

Test(lease, as_many_as_pass_at_once_are_not_too_many)
{
    struct limit_state state;
    cr_expect_eq(try_events(CAPACITY, &state), GUARD_ASK);
    cr_expect_eq(try_events(CAPACITY + 1, &state), GUARD_REFUSED);
    cr_expect_eq(state.retry_us, -1);
}

Test(lease, all_charges_of_a_request_are_granted)
{
    struct guard_charge charges[] = {{SLICE("a"), 2}, {SLICE("b"), 1}};
    struct storage_job job = write_of(charges, 2);
    guard_submit(guard, &job);
    cr_assert_eq(n_sent, 2, "a lease each, at once");
    answer(0, 2, 62, 2 * SECOND_US);
    answer(1, 2, 62, 2 * SECOND_US);
    cr_expect_eq(job.u.write.guard.granted, 3);
}

/* ---- what Redis is asked for ---- */

Test(lease, a_large_request_is_granted_whole_or_not_at_all)
{
    begin(2, 0, 0); /* one is left */
    now_us += PAUSE_US;
    struct guard_charge charge = {SLICE("a"), 4};
    struct storage_job job = write_of(&charge, 1);
    guard_submit(guard, &job);
    cr_assert_eq(n_sent, 1);
    cr_expect_eq(sent[0]->u.limit.need, 3);
    cr_expect_eq(sent[0]->u.limit.want, 3);
}

Test(lease, a_lease_is_filled_up)
{
    begin(2, 0, 0); /* one is left */
    now_us += PAUSE_US;
    struct guard_charge charge = {SLICE("a"), 2};
    struct storage_job job = write_of(&charge, 1);
    guard_submit(guard, &job);
    cr_assert_eq(n_sent, 1);
    cr_expect_eq(sent[0]->u.limit.need, 0, "less is of use, too");
    cr_expect_eq(sent[0]->u.limit.want, LEASE - 1);
}

Test(lease, the_next_one_is_asked_for_when_half_is_gone)
{
    begin(LEASE, 40, 0);
    cr_assert_eq(n_sent, 1);
    cr_expect_eq(sent[0]->u.limit.need, 0);
    cr_expect_eq(sent[0]->u.limit.want, LEASE - 1);
}

/* Each refusal would be a round trip. */
Test(lease, redis_is_left_alone_when_it_has_nothing)
{
    struct limit_state state;
    begin(LEASE, 0, 0);
    cr_expect_eq(n_sent, 0, "none is asked for ahead");
    cr_expect_eq(try_events(2, &state), GUARD_REFUSED);
    cr_expect_leq(state.retry_us, PAUSE_US);
    cr_expect_geq(state.retry_us, PAUSE_US / 3);
    now_us += PAUSE_US;
    cr_expect_eq(try_events(2, &state), GUARD_ASK);
}

/* A process must leave something to the others, and ask before all has come back. */
Test(lease, of_a_small_limit_that_comes_back_fast)
{
    struct limit fast = {LIMIT_FUNNEL, .count = 100000, .period_us = SECOND_US, .burst = 9};
    cr_expect_eq(guard->pace_us, 50000);
    guard_set_limit(guard, &fast);
    cr_expect_eq(guard->lease, 5, "half of what passes at once, not what 50 ms bring");
    cr_expect_eq(guard->pace_us, 12, "an eighth of the time in which all comes back");
    fast.burst = 0;
    guard_set_limit(guard, &fast);
    cr_expect_eq(guard->lease, 1);
}

/* That Redis had nothing left was said of the old limit. */
Test(lease, of_another_limit_the_next_one_is_asked_for_at_once)
{
    struct limit great = {
        LIMIT_FUNNEL, .count = 1, .period_us = SECOND_US, .burst = 2 * CAPACITY - 1};
    struct limit_state state;
    begin(3, 0, 0);
    cr_assert_eq(n_sent, 0);
    guard_set_limit(guard, &great);
    cr_expect_eq(try_events(1, &state), GUARD_ADMITTED);
    cr_assert_eq(n_sent, 1);
    cr_expect_eq(sent[0]->u.limit.want, 2 * LEASE - 1);
}

/* ---- jobs that wait ---- */

/* Nobody flushes the writer behind a job that has waited. */
Test(lease, a_job_that_has_waited_is_the_last_of_its_kind)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct storage_job job = write_of(&charge, 1), next = write_of(&charge, 1);
    job.more_follow = next.more_follow = true;
    guard_submit(guard, &job);
    cr_assert_eq(n_sent, 1);
    answer(0, LEASE, 40, 0);
    cr_expect_not(job.more_follow);
    guard_submit(guard, &next);
    cr_expect(next.more_follow, "it has not waited");
}

Test(lease, the_earliest_deadline_is_the_next)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct storage_job early = write_of(&charge, 1), patient = write_of(&charge, 1);
    early.deadline_ms -= 1000;
    guard_submit(guard, &early);
    guard_submit(guard, &patient);
    cr_expect_eq(guard_tick(guard, now_us / 1000), early.deadline_ms);
}

/* ---- idle leases ---- */

/* A request for two sites waits for the second lease, with the first one in hand. */
Test(lease, the_idle_time_begins_with_the_answer)
{
    struct guard_charge charges[] = {{SLICE("a"), 2}, {SLICE("b"), 1}};
    struct storage_job job = write_of(charges, 2);
    guard_submit(guard, &job);
    cr_assert_eq(n_sent, 2);
    now_us += SECOND_US / 5;
    answer(0, 2, 62, 2 * SECOND_US);
    now_us += SECOND_US / 5;
    (void)guard_tick(guard, now_us / 1000);
    cr_expect_eq(n_sent, 2, "it is not given back");
    now_us += SECOND_US / 5;
    (void)guard_tick(guard, now_us / 1000);
    cr_assert_eq(n_sent, 3);
    cr_expect_eq(sent[2]->u.limit.need, -2);
}

/* The lease that is asked for ahead is the same job. */
Test(lease, none_is_given_back_while_another_is_asked_for)
{
    begin(LEASE, 40, 0);
    cr_assert_eq(n_sent, 1);
    now_us += SECOND_US;
    (void)guard_tick(guard, now_us / 1000);
    cr_assert_eq(n_sent, 1);
    cr_expect_eq(sent[0]->u.limit.want, LEASE - 1);
}
