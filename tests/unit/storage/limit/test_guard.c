/* The ingestion guard alone: the test is Redis, the writer and the clock.  storage/limit/guard.h */
#include "storage/limit/guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/limit/funnel.h"
#include "tests/lib/guard_fixture.h"

#define TABLE_MAX 100000 /* funnels */

TestSuite(guard, .init = guard_fixture_setup, .fini = guard_fixture_teardown, .timeout = 60);

/* Have Redis grant @granted events to @site, and forget what was guarded.sent. */
static void lease(const char *site, int64_t granted, int64_t remaining, int64_t reset_us)
{
    struct guard_charge charge = {slice_of(site), 1};
    struct storage_job job = guard_write_of(&charge, 1);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1, "a lease is asked for");
    cr_assert(slice_equal(guarded.sent[0]->u.limit.key, slice_of(site)));
    guard_answer(0, granted, remaining, reset_us);
    guarded.n_sent = guarded.n_done = 0;
}

Test(guard, a_job_waits_for_its_lease_and_goes_on)
{
    struct guard_charge charge = {SLICE("a"), 2};
    struct storage_job job = guard_write_of(&charge, 1);
    struct limit_state state;
    cr_expect_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_eq(guarded.sent[0]->op, STORAGE_LIMIT);
    cr_expect(guarded.sent[0]->u.limit.guard);
    guard_answer(0, 2, 62, 2 * GUARD_SECOND_US);
    cr_assert_geq(guarded.n_sent, 2);
    cr_expect(guarded.sent[1] == &job || guarded.sent[guarded.n_sent - 1] == &job);
    cr_expect_eq(guarded.n_done, 0);
    cr_expect_eq(job.u.write.guard.granted, 2);
}

Test(guard, what_a_lease_that_fails_means_for_the_job)
{
    static const enum storage_err cases[][2] = {
        {STORAGE_DOWN, STORAGE_DOWN}, {STORAGE_OOM, STORAGE_OOM}, {STORAGE_UNKNOWN, STORAGE_LATE}};
    for (size_t i = 0; i < 3; i++) {
        struct guard_charge charge = {SLICE("a"), 1};
        struct storage_job job = guard_write_of(&charge, 1);
        guarded.n_sent = guarded.n_done = 0;
        guard_submit(guarded.guard, &job);
        cr_assert_eq(guarded.n_sent, 1);
        job_done(guarded.sent[0], cases[i][0]);
        cr_expect_eq(guarded.n_done, 1);
        cr_expect_eq(guarded.done_err, cases[i][1], "%zu", i);
    }
}

Test(guard, a_lease_that_cannot_be_asked_for)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct storage_job job = guard_write_of(&charge, 1);
    guarded.send_err = STORAGE_FULL;
    guard_submit(guarded.guard, &job);
    cr_expect_eq(guarded.n_done, 1);
    cr_expect_eq(guarded.done_err, STORAGE_FULL);
}

Test(guard, a_job_that_has_no_time_left)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct storage_job job = guard_write_of(&charge, 1);
    job.deadline_ms = guarded.now_us / 1000;
    guard_submit(guarded.guard, &job);
    cr_expect_eq(guarded.n_sent, 0, "no lease is taken for it");
    cr_expect_eq(guarded.n_done, 1);
    cr_expect_eq(guarded.done_err, STORAGE_LATE);
}

/* Of several limits that refuse, the answer names the one that takes longest; of those, never. */
Test(guard, the_longest_refusal_is_told)
{
    lease("short", 0, 0, GUARD_CAPACITY * GUARD_SECOND_US + GUARD_SECOND_US);
    lease("long", 0, 0, GUARD_CAPACITY * GUARD_SECOND_US + 9 * GUARD_SECOND_US);
    struct guard_charge charges[] = {{SLICE("short"), 1}, {SLICE("long"), 1},
        {SLICE("short"), GUARD_CAPACITY + 1}, {SLICE("long"), 1}};
    struct limit_state state, one;
    cr_expect_eq(guard_try(guarded.guard, charges, 1, &one), GUARD_REFUSED);
    cr_expect_eq(guard_try(guarded.guard, charges, 2, &state), GUARD_REFUSED);
    cr_expect_eq(state.retry_us, one.retry_us + 8 * GUARD_SECOND_US);
    cr_expect_not(state.allowed);
    cr_expect_eq(guard_try(guarded.guard, charges, 4, &state), GUARD_REFUSED);
    cr_expect_eq(state.retry_us, -1, "more than ever passes at once");
    struct guard_charge backwards[] = {charges[1], charges[0]};
    cr_expect_eq(guard_try(guarded.guard, backwards, 2, &state), GUARD_REFUSED);
    cr_expect_eq(state.retry_us, one.retry_us + 8 * GUARD_SECOND_US);
    cr_expect(guard_closed(guarded.guard, SLICE("long"), &state));
    cr_expect_not(state.allowed);
    cr_expect_eq(state.retry_us, one.retry_us + 8 * GUARD_SECOND_US);
    cr_expect_not(guard_closed(guarded.guard, SLICE("other"), &state));
}

Test(guard, all_charges_are_taken_or_none)
{
    lease("open", GUARD_LEASE + 1, 10, 0);
    lease("shut", 0, 0, GUARD_CAPACITY * GUARD_SECOND_US + GUARD_SECOND_US);
    struct guard_charge charges[] = {{SLICE("open"), 2}, {SLICE("shut"), 1}};
    struct guard_charge backwards[] = {charges[1], charges[0]};
    struct limit_state state;
    cr_expect_eq(guard_try(guarded.guard, charges, 2, &state), GUARD_REFUSED);
    cr_expect_eq(guard_try(guarded.guard, backwards, 2, &state), GUARD_REFUSED);
    cr_expect_eq(
        guard_try(guarded.guard, charges, 1, &state), GUARD_ADMITTED, "nothing was taken before");
    cr_expect_eq(state.granted, 2);
}

/* An address is hashed with the data's secret, which a process lacks that has seen no Redis. */
Test(guard, no_address_is_judged_without_the_secret)
{
    struct guard_charge charge = {{"\x7f\0\0\1", 4}, 1};
    struct guard_charge v6 = {SLICE("an IPv6 address "), 1};
    struct guard_charge foreign = {SLICE("longer than any address is"), 1};
    struct storage_job job = guard_write_of(&charge, 1);
    struct limit_state state;
    guarded.core->config.guard_by = GUARD_IP;
    cr_expect_eq(guard_try(guarded.guard, &foreign, 1, &state), GUARD_FAILED);
    cr_expect_eq(guard_try(guarded.guard, &v6, 1, &state), GUARD_ASK);
    cr_expect_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    const struct funnel *known = funnel_known(guarded.guard, charge.who);
    cr_assert_not_null(known);
    cr_expect_null(memmem(known->id, known->id_n, "7f000001", 8), "it is not in the clear");
    atomic_store(&guarded.core->secret, NULL);
    guard_remake();
    cr_expect_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_FAILED);
    cr_expect_not(guard_closed(guarded.guard, charge.who, &state));
    guard_submit(guarded.guard, &job);
    cr_expect_eq(guarded.n_done, 1);
    cr_expect_eq(guarded.done_err, STORAGE_NOMEM);
    cr_expect_eq(guarded.n_sent, 0);
}

static struct slice name_of(unsigned i)
{
    static char name[16];
    (void)snprintf(name, sizeof(name), "site-%u", i);
    return slice_of(name);
}

Test(guard, a_full_table_forgets_what_was_used_longest_ago)
{
    struct limit_state state;
    for (unsigned i = 0; i < TABLE_MAX; i++) {
        struct guard_charge charge = {name_of(i), 1};
        cr_assert_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    }
    cr_expect_eq(guarded.guard->n, TABLE_MAX);
    cr_assert_not_null(funnel_known(guarded.guard, name_of(0)));
    struct guard_charge first = {SLICE("site-0"), 1}, one_more = {SLICE("one more"), 1};
    cr_expect_eq(guard_try(guarded.guard, &first, 1, &state), GUARD_ASK, "it is used again");
    cr_expect_eq(guard_try(guarded.guard, &one_more, 1, &state), GUARD_ASK);
    cr_expect_eq(guarded.guard->n, TABLE_MAX);
    cr_expect_not_null(funnel_known(guarded.guard, name_of(0)));
    cr_expect_null(funnel_known(guarded.guard, name_of(1)));
    cr_expect_not_null(funnel_known(guarded.guard, name_of(2)));
    /* What has a lease under way cannot be forgotten. */
    struct guard_charge oldest = {SLICE("site-2"), 1}, too_many = {SLICE("too many"), 1};
    struct storage_job job = guard_write_of(&oldest, 1), refused = guard_write_of(&too_many, 1);
    guard_submit(guarded.guard, &job);
    cr_assert_eq(guarded.n_sent, 1);
    while (guarded.guard->oldest != guarded.sent[0]->data) {
        funnel_use(guarded.guard, guarded.guard->oldest, guarded.now_us);
    }
    guard_submit(guarded.guard, &refused);
    cr_expect_eq(guarded.n_done, 1);
    cr_expect_eq(guarded.done_err, STORAGE_NOMEM);
    cr_expect_null(funnel_known(guarded.guard, too_many.who));
}

/* What Redis has granted to it would be lost with it. */
Test(guard, what_is_held_is_not_forgotten_for_want_of_room)
{
    struct guard_charge held = {SLICE("held"), 1}, one_more = {SLICE("one more"), 1};
    struct limit_state state;
    lease("held", GUARD_LEASE + 3, 10, 0);
    while (guarded.guard->n < TABLE_MAX) {
        struct guard_charge charge = {name_of((unsigned)guarded.guard->n), 1};
        cr_assert_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    }
    cr_expect_eq(guard_try(guarded.guard, &one_more, 1, &state), GUARD_FAILED);
    cr_expect_eq(guard_try(guarded.guard, &held, 1, &state), GUARD_ADMITTED);
    cr_expect_eq(guard_try(guarded.guard, &one_more, 1, &state), GUARD_ASK, "it was used last");
}

/* A tick forgets a few at a time: it is on a sender's thread. */
Test(guard, idle_funnels_are_forgotten_after_a_minute)
{
    struct limit_state state;
    for (unsigned i = 0; i < 20; i++) {
        struct guard_charge charge = {name_of(i), 1};
        cr_assert_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    }
    guarded.now_us += 59 * GUARD_SECOND_US;
    lease("late", GUARD_LEASE, 10, 0);
    (void)guard_tick(guarded.guard, guarded.now_us / 1000);
    cr_expect_eq(guarded.guard->n, 21);
    guarded.now_us += 2 * GUARD_SECOND_US;
    (void)guard_tick(guarded.guard, guarded.now_us / 1000);
    cr_expect_eq(guarded.guard->n, 5);
    cr_expect_null(funnel_known(guarded.guard, name_of(15)));
    cr_expect_not_null(funnel_known(guarded.guard, name_of(16)));
    lease("later", GUARD_LEASE, 10, 0);
    guarded.now_us += GUARD_SECOND_US;
    (void)guard_tick(guarded.guard, guarded.now_us / 1000);
    cr_expect_eq(guarded.guard->n, 2, "those that were used since stay");
}

/* Where all that Redis grants is handed out at once, nothing is ever held when a tick comes. */
Test(guard, idle_funnels_are_forgotten_though_nothing_is_held)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct limit_state state;
    int64_t begun_ms = guarded.now_us / 1000;
    cr_expect_eq(guard_tick(guarded.guard, begun_ms), INT64_MAX, "there is none");
    cr_assert_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    int64_t next_ms = guard_tick(guarded.guard, begun_ms);
    cr_expect_eq(next_ms, begun_ms + 60000, "it is looked at when it can be forgotten");
    cr_assert_eq(guarded.guard->n, 1);
    cr_expect_eq(guard_tick(guarded.guard, begun_ms + 60000), INT64_MAX);
    cr_expect_eq(guarded.guard->n, 0);
}

/* The tick for idle leases is not put off by that. */
Test(guard, a_lease_is_looked_at_soon_where_others_are_forgotten_late)
{
    struct guard_charge charge = {SLICE("idle"), 1};
    struct limit_state state;
    int64_t begun_ms = guarded.now_us / 1000;
    cr_assert_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    (void)guard_tick(guarded.guard, begun_ms);
    guarded.now_us += GUARD_SECOND_US;
    lease("a", GUARD_LEASE + 1, 10, 0);
    cr_expect_lt(guard_tick(guarded.guard, begun_ms + 1000), begun_ms + 1200);
    guarded.now_us += GUARD_SECOND_US;
    guarded.n_sent = 0;
    (void)guard_tick(guarded.guard, begun_ms + 2000);
    cr_assert_eq(guarded.n_sent, 1);
    cr_expect_lt(guarded.sent[0]->u.limit.need, 0, "it is given back");
}

Test(guard, a_job_whose_deadline_comes_while_it_waits_is_answered)
{
    struct guard_charge charge = {SLICE("a"), 1};
    struct storage_job early = guard_write_of(&charge, 1), patient = guard_write_of(&charge, 1);
    early.deadline_ms = guarded.now_us / 1000 + 100;
    guard_submit(guarded.guard, &patient);
    guard_submit(guarded.guard, &early);
    cr_expect_eq(guarded.n_sent, 1, "one lease for both");
    cr_expect_eq(guard_tick(guarded.guard, early.deadline_ms - 1), early.deadline_ms);
    cr_expect_eq(guarded.n_done, 0);
    cr_expect_eq(guard_tick(guarded.guard, early.deadline_ms), patient.deadline_ms);
    cr_expect_eq(guarded.n_done, 1);
    cr_expect_eq(early.err, STORAGE_LATE);
    guard_answer(0, GUARD_LEASE, 10, 0);
    cr_expect_eq(guarded.n_done, 1);
    cr_expect_eq(patient.u.write.guard.granted, 1, "the other one went on");
}

/* Leases that are asked for ahead, for another site, have nobody who waits for them. */
Test(guard, a_deadline_is_kept_beside_leases_that_nobody_waits_for)
{
    struct guard_charge a = {SLICE("a"), 1}, b = {SLICE("b"), 1};
    struct limit_state state;
    lease("a", GUARD_LEASE, 40, 0);
    guarded.sent[0] = guarded.sent[1]; /* the one ahead */
    for (int i = 0; i < 2; i++) {
        guarded.n_sent = 1;
        guard_answer(0, 1, 40, 0);
        guarded.n_sent = 0;
        cr_assert_eq(guard_try(guarded.guard, &a, 1, &state), GUARD_ADMITTED);
        cr_assert_eq(guarded.n_sent, 1, "another one ahead");
    }
    struct storage_job job = guard_write_of(&b, 1);
    guard_submit(guarded.guard, &job);
    cr_expect_eq(guarded.n_done, 0);
    (void)guard_tick(guarded.guard, job.deadline_ms);
    cr_expect_eq(guarded.n_done, 1);
    cr_expect_eq(job.err, STORAGE_LATE);
}

/* Less is admitted than was taken from Redis then, never more. */
Test(guard, a_smaller_limit_holds_at_once)
{
    struct limit small = {LIMIT_FUNNEL, .count = 1, .period_us = GUARD_SECOND_US, .burst = 1};
    struct guard_charge charge = {SLICE("a"), 2}, one = {SLICE("a"), 1};
    struct limit_state state;
    lease("a", GUARD_LEASE + 3, 40, 0); /* it has taken one */
    cr_assert_eq(funnel_known(guarded.guard, charge.who)->left, GUARD_LEASE + 2);
    guard_set_limit(guarded.guard, &small);
    cr_assert_eq(guarded.guard->lease, 1);
    cr_expect_eq(funnel_known(guarded.guard, charge.who)->left, 1);
    cr_expect_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    cr_expect_eq(guard_try(guarded.guard, &one, 1, &state), GUARD_ADMITTED);
}

/* What Redis has told was about the limit that it was asked with. */
Test(guard, a_greater_limit_refuses_nobody_by_what_was_told_of_the_old_one)
{
    struct limit great = {
        LIMIT_FUNNEL, .count = 1, .period_us = GUARD_SECOND_US, .burst = 2 * GUARD_CAPACITY};
    struct guard_charge charge = {SLICE("a"), 1};
    struct limit_state state;
    lease("a", 0, 0, 3 * GUARD_CAPACITY * GUARD_SECOND_US);
    cr_expect_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_REFUSED);
    guard_set_limit(guarded.guard, &great);
    cr_expect_eq(guard_try(guarded.guard, &charge, 1, &state), GUARD_ASK);
    cr_expect_not(guard_closed(guarded.guard, charge.who, &state));
}

Test(guard, what_is_left_is_given_back_before_the_end)
{
    lease("a", GUARD_LEASE + 3, 40, 0);
    lease("empty", 0, 0, GUARD_CAPACITY * GUARD_SECOND_US + GUARD_SECOND_US);
    guarded.n_sent = 0;
    guard_give_back(guarded.guard);
    cr_assert_eq(guarded.n_sent, 1, "nothing is left of the other one");
    cr_expect(slice_equal(guarded.sent[0]->u.limit.key, SLICE("a")));
    cr_expect_eq(guarded.sent[0]->u.limit.need, -(GUARD_LEASE + 2));
    guard_give_back(guarded.guard);
    cr_expect_eq(guarded.n_sent, 1, "it is under way");
    guard_answer(0, 0, GUARD_CAPACITY, 0);
    cr_expect_eq(funnel_known(guarded.guard, SLICE("a"))->left, 0);
}
