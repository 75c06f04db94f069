/* What a guard asks Redis for, and what it tells of a limit: storage/limit/lease.h, funnel.h. */
#include "storage/limit/lease.h"

#include <criterion/criterion.h>

#include "storage/limit/funnel.h"
#include "storage/limit/guard.h"
#include "tests/lib/guard_fixture.h"

#define PAUSE_US 75000 /* the longest after Redis had nothing left */

TestSuite(lease, .init = guard_fixture_setup, .fini = guard_fixture_teardown, .timeout = 60);

/* Have an event of site "a" ask for a lease, which Redis answers.  A lease that is asked for ahead
 * is guarded.sent[0] then. */
static void begin(int64_t granted, int64_t remaining, int64_t reset_us)
{
    static struct guard_charge charge = {{"a", 1}, 1};
    static struct storage_job job;
    job = guard_write_of(&charge, 1);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1, "a lease is asked for");
    guard_answer(0, granted, remaining, reset_us);
    guarded.n_sent =
        granted > 0 ? guarded.n_sent - 2 : 0; /* without the first lease and the event */
    guarded.sent[0] = guarded.sent[1];
}

static enum guard_verdict try_events(int64_t n, struct limit_state *ret_state)
{
    struct guard_charge charge = {SLICE("a"), n};
    return guard_try(guarded.guard, &charge, 1, ret_state);
}

/* ---- what is told ---- */

/* Redis counts a lease as used up, but what is left of the lease can still be had. */
Test(lease, what_is_left_of_a_lease_is_told_as_free)
{
    struct limit_state state;
    begin(5, GUARD_CAPACITY - 10, 10 * GUARD_SECOND_US); /* one of the five is gone */
    guard_peek(guarded.guard, SLICE("a"), &state);
    cr_expect_eq(state.remaining, GUARD_CAPACITY - 10 + 4);
    cr_expect_eq(state.reset_us, 6 * GUARD_SECOND_US);
    guarded.now_us += GUARD_SECOND_US / 2;
    guard_peek(guarded.guard, SLICE("a"), &state);
    cr_expect_eq(state.remaining, GUARD_CAPACITY - 10 + 4, "half an event is none");
    cr_expect_eq(state.reset_us, 5 * GUARD_SECOND_US + GUARD_SECOND_US / 2);
}

/* After a limit became smaller Redis may have counted more than passes at once. */
Test(lease, never_less_than_nothing_is_told_as_free)
{
    struct limit_state state;
    guard_peek(guarded.guard, SLICE("a"), &state);
    cr_expect(state.allowed && state.remaining == GUARD_CAPACITY, "all, before the first event");
    begin(0, 0, (GUARD_CAPACITY + 10) * GUARD_SECOND_US);
    guard_peek(guarded.guard, SLICE("a"), &state);
    cr_expect_eq(state.remaining, 0);
    cr_expect_eq(state.reset_us, (GUARD_CAPACITY + 10) * GUARD_SECOND_US);
}

Test(lease, what_is_told_counts_the_event_itself)
{
    struct limit_state state;
    begin(5, GUARD_CAPACITY - 10, 10 * GUARD_SECOND_US);
    cr_expect_eq(try_events(1, &state), GUARD_ADMITTED);
    cr_expect_eq(state.remaining, GUARD_CAPACITY - 10 + 3);
    cr_expect_eq(state.reset_us, 7 * GUARD_SECOND_US);
}

Test(lease, the_wait_is_for_what_the_lease_lacks)
{
    struct limit_state state;
    begin(3, 1, GUARD_CAPACITY * GUARD_SECOND_US); /* two are left */
    cr_expect_eq(try_events(5, &state), GUARD_REFUSED);
    cr_expect_eq(state.retry_us, 3 * GUARD_SECOND_US + 1);
}

/* Other processes may have given leases back. */
Test(lease, a_refusal_is_believed_for_a_second)
{
    struct limit_state state;
    begin(0, 0, (GUARD_CAPACITY + 10) * GUARD_SECOND_US);
    guarded.now_us += GUARD_SECOND_US - 1;
    cr_expect_eq(try_events(1, &state), GUARD_REFUSED);
    guarded.now_us++;
    cr_expect_eq(try_events(1, &state), GUARD_ASK);
}

Test(lease, as_many_as_pass_at_once_are_not_too_many)
{
    struct limit_state state;
    cr_expect_eq(try_events(GUARD_CAPACITY, &state), GUARD_ASK);
    cr_expect_eq(try_events(GUARD_CAPACITY + 1, &state), GUARD_REFUSED);
    cr_expect_eq(state.retry_us, -1);
}

Test(lease, all_charges_of_a_request_are_granted)
{
    struct guard_charge charges[] = {{SLICE("a"), 2}, {SLICE("b"), 1}};
    struct storage_job job = guard_write_of(charges, 2);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 2, "a lease each, at once");
    guard_answer(0, 2, 62, 2 * GUARD_SECOND_US);
    guard_answer(1, 2, 62, 2 * GUARD_SECOND_US);
    cr_expect_eq(job.u.write.guard.granted, 3);
}

/* ---- what Redis is asked for ---- */

Test(lease, a_large_request_is_granted_whole_or_not_at_all)
{
    begin(2, 0, 0); /* one is left */
    guarded.now_us += PAUSE_US;
    struct guard_charge charge = {SLICE("a"), 4};
    struct storage_job job = guard_write_of(&charge, 1);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->u.limit.need, 3);
    cr_expect_eq(guarded.sent[0]->u.limit.want, 3);
}

Test(lease, a_lease_is_filled_up)
{
    begin(2, 0, 0); /* one is left */
    guarded.now_us += PAUSE_US;
    struct guard_charge charge = {SLICE("a"), 2};
    struct storage_job job = guard_write_of(&charge, 1);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->u.limit.need, 0, "less is of use, too");
    cr_expect_eq(guarded.sent[0]->u.limit.want, GUARD_LEASE - 1);
}

Test(lease, the_next_one_is_asked_for_when_half_is_gone)
{
    begin(GUARD_LEASE, 40, 0);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->u.limit.need, 0);
    cr_expect_eq(guarded.sent[0]->u.limit.want, GUARD_LEASE - 1);
}

Test(lease, a_request_as_large_as_a_lease_takes_what_there_is)
{
    struct guard_charge charge = {SLICE("a"), GUARD_LEASE};
    struct storage_job job = guard_write_of(&charge, 1);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->u.limit.need, 0);
    cr_expect_eq(guarded.sent[0]->u.limit.want, GUARD_LEASE);
}

/* The job of the first one is under way, and cannot be sent twice. */
Test(lease, only_one_is_asked_for_ahead)
{
    struct limit_state state;
    begin(GUARD_LEASE, 40, 0);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(try_events(1, &state), GUARD_ADMITTED);
    cr_expect_eq(guarded.n_sent, 1);
}

/* The one that was asked for, and the one ahead.  What cannot be sent is not asked for. */
Test(lease, each_that_is_asked_for_is_counted)
{
    static struct guard_charge charge = {{"a", 1}, 1};
    struct storage_job job = guard_write_of(&charge, 1);
    const _Atomic int64_t *counted = &guarded.core->stats.guard_leases;
    guarded.send_err = STORAGE_FULL;
    guard_submit(guarded.guard, &job);
    cr_expect_eq(guarded.done_err, STORAGE_FULL);
    cr_expect_eq(atomic_load(counted), 0);
    guarded.send_err = STORAGE_OK;
    begin(GUARD_LEASE, 40, 0);
    cr_expect_eq(atomic_load(counted), 2);
}

/* A request whose events are all bad takes nothing. */
Test(lease, none_is_asked_for_ahead_of_the_first_event)
{
    struct limit_state state;
    cr_expect_eq(try_events(0, &state), GUARD_ADMITTED);
    cr_expect_eq(guarded.n_sent, 0);
}

/* Redis had nothing left, and since then not one event has come back. */
Test(lease, none_is_asked_for_ahead_before_redis_can_have_one)
{
    struct limit_state state;
    begin(GUARD_LEASE + 1, 0, GUARD_CAPACITY * GUARD_SECOND_US - 1);
    guarded.now_us += PAUSE_US;
    cr_expect_eq(try_events(1, &state), GUARD_ADMITTED);
    cr_expect_eq(guarded.n_sent, 0);
    guarded.now_us += GUARD_SECOND_US;
    cr_expect_eq(try_events(1, &state), GUARD_ADMITTED);
    cr_expect_eq(guarded.n_sent, 1);
}

/* Each refusal would be a round trip. */
Test(lease, redis_is_left_alone_when_it_has_nothing)
{
    struct limit_state state;
    begin(GUARD_LEASE, 0, 0);
    cr_expect_eq(guarded.n_sent, 0, "none is asked for ahead");
    cr_expect_eq(try_events(2, &state), GUARD_REFUSED);
    cr_expect_leq(state.retry_us, PAUSE_US);
    cr_expect_geq(state.retry_us, PAUSE_US / 3);
    guarded.now_us += PAUSE_US;
    cr_expect_eq(try_events(2, &state), GUARD_ASK);
}

/* A process must leave something to the others, and ask before all has come back. */
Test(lease, of_a_small_limit_that_comes_back_fast)
{
    struct limit fast = {LIMIT_FUNNEL, .count = 100000, .period_us = GUARD_SECOND_US, .burst = 9};
    cr_expect_eq(guarded.guard->pace_us, 50000);
    guard_set_limit(guarded.guard, &fast);
    cr_expect_eq(guarded.guard->lease, 5, "half of what passes at once, not what 50 ms bring");
    cr_expect_eq(guarded.guard->pace_us, 12, "an eighth of the time in which all comes back");
    fast.burst = 0;
    guard_set_limit(guarded.guard, &fast);
    cr_expect_eq(guarded.guard->lease, 1);
    fast.count = 100;
    fast.burst = 7;
    guard_set_limit(guarded.guard, &fast);
    cr_expect_eq(guarded.guard->lease, 4, "of eight, though 50 ms bring five");
}

/* Otherwise each request would ask for the next one. */
Test(lease, of_a_limit_that_allows_only_one_none_is_asked_for_ahead)
{
    struct limit small = {LIMIT_FUNNEL, .count = 1, .period_us = GUARD_SECOND_US, .burst = 9};
    guard_set_limit(guarded.guard, &small);
    cr_assert_eq(guarded.guard->lease, 1);
    begin(1, 5, 0);
    cr_expect_eq(guarded.n_sent, 0);
}

/* That Redis had nothing left was said of the old limit. */
Test(lease, of_another_limit_the_next_one_is_asked_for_at_once)
{
    struct limit great = {
        LIMIT_FUNNEL, .count = 1, .period_us = GUARD_SECOND_US, .burst = 2 * GUARD_CAPACITY - 1};
    struct limit_state state;
    begin(3, 0, 0);
    cr_assert_eq(guarded.n_sent, 0);
    guard_set_limit(guarded.guard, &great);
    cr_expect_eq(try_events(1, &state), GUARD_ADMITTED);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->u.limit.want, 2 * GUARD_LEASE - 1);
}

/* ---- jobs that wait ---- */

/* Nobody flushes the writer behind a job that has waited. */
Test(lease, a_job_that_has_waited_is_the_last_of_its_kind)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct storage_job job = guard_write_of(&charge, 1), next = guard_write_of(&charge, 1);
    job.more_follow = next.more_follow = true;
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1);
    guard_answer(0, GUARD_LEASE, 40, 0);
    cr_expect_not(job.more_follow);
    guard_submit(guarded.guard, &next);
    cr_expect(next.more_follow, "it has not waited");
}

Test(lease, the_earliest_deadline_is_the_next)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct storage_job early = guard_write_of(&charge, 1), patient = guard_write_of(&charge, 1);
    early.deadline_ms -= 1000;
    guard_submit(guarded.guard, &early);
    guard_submit(guarded.guard, &patient);
    cr_expect_eq(guard_tick(guarded.guard, guarded.now_us / 1000), early.deadline_ms);
}

/* ---- idle leases ---- */

/* A request for two sites waits for the second lease, with the first one in hand. */
Test(lease, the_idle_time_begins_with_the_answer)
{
    struct guard_charge charges[] = {{SLICE("a"), 2}, {SLICE("b"), 1}};
    struct storage_job job = guard_write_of(charges, 2);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 2);
    guarded.now_us += GUARD_SECOND_US / 5;
    guard_answer(0, 2, 62, 2 * GUARD_SECOND_US);
    guarded.now_us += GUARD_SECOND_US / 5;
    (void)guard_tick(guarded.guard, guarded.now_us / 1000);
    cr_expect_eq(guarded.n_sent, 2, "it is not given back");
    guarded.now_us += GUARD_SECOND_US / 5;
    (void)guard_tick(guarded.guard, guarded.now_us / 1000);
    cr_assert_eq(guarded.n_sent, 3);
    cr_expect_eq(guarded.sent[2]->u.limit.need, -2);
}

Test(lease, one_is_idle_after_a_quarter_of_a_second)
{
    int64_t begun_ms = guarded.now_us / 1000;
    begin(GUARD_LEASE + 2, 40, 0);
    cr_assert_eq(guarded.n_sent, 0);
    cr_expect_eq(guard_tick(guarded.guard, begun_ms + 125), begun_ms + 250);
    cr_expect_eq(guarded.n_sent, 0);
    (void)guard_tick(guarded.guard, begun_ms + 250);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->u.limit.need, -(GUARD_LEASE + 1));
}

/* Then the sender's thread may sleep until the funnel can be forgotten: a minute after its last
 * event, not after the lease was given back. */
Test(lease, nothing_is_looked_at_soon_when_all_are_given_back)
{
    int64_t begun_ms = guarded.now_us / 1000;
    begin(GUARD_LEASE + 2, 40, 0);
    guarded.now_us += GUARD_SECOND_US;
    cr_expect_eq(lease_tick(guarded.guard, begun_ms + 1000), begun_ms + 60000);
    cr_assert_eq(guarded.n_sent, 1);
    guarded.now_us += GUARD_SECOND_US;
    guard_answer(0, 0, GUARD_CAPACITY, 0);
    cr_expect_eq(lease_tick(guarded.guard, begun_ms + 2000), begun_ms + 60000);
    (void)lease_tick(guarded.guard, begun_ms + 60000);
    cr_expect_null(funnel_known(guarded.guard, SLICE("a")));
}

/* Its answer would be written where nothing is any more. */
Test(lease, a_funnel_is_not_forgotten_while_one_is_under_way)
{
    struct limit_state state;
    begin(GUARD_LEASE, 40, 0);
    cr_assert_eq(guarded.n_sent, 1);
    cr_assert_eq(try_events(1, &state), GUARD_ADMITTED, "nothing is left");
    guarded.now_us += 61 * GUARD_SECOND_US;
    (void)guard_tick(guarded.guard, guarded.now_us / 1000);
    cr_assert_not_null(funnel_known(guarded.guard, SLICE("a")));
    guard_answer(0, 1, 40, 0);
    cr_expect_eq(funnel_known(guarded.guard, SLICE("a"))->left, 1);
}

/* The lease that is asked for ahead is the same job. */
Test(lease, none_is_given_back_while_another_is_asked_for)
{
    begin(GUARD_LEASE, 40, 0);
    cr_assert_eq(guarded.n_sent, 1);
    guarded.now_us += GUARD_SECOND_US;
    (void)guard_tick(guarded.guard, guarded.now_us / 1000);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->u.limit.want, GUARD_LEASE - 1);
}
