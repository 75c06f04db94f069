#include "tests/lib/guard_fixture.h"

#include <criterion/criterion.h>

#include "storage/limit/funnel.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

#define DEADLINE_S 5

struct guard_fixture guarded;

static int64_t clock_us(void)
{
    return guarded.now_us;
}

static bool submit(void *data, struct storage_job *job, enum storage_err *ret_err)
{
    cr_assert(data == &guarded && guarded.n_sent < GUARD_SENT_MAX);
    if (guarded.send_err != STORAGE_OK) {
        *ret_err = guarded.send_err;
        return false;
    }
    guarded.sent[guarded.n_sent++] = job;
    return true;
}

static void on_done(struct storage_job *job)
{
    guarded.n_done++;
    guarded.done_err = job->err;
}

void guard_remake(void)
{
    guard_free(guarded.guard);
    guarded.guard = guard_new(guarded.core, submit, &guarded);
    cr_assert_not_null(guarded.guard);
}

void guard_fixture_setup(void)
{
    guarded.core = fold_core_make(1);
    guarded.core->config.guard_by = GUARD_SITE;
    guarded.core->config.guard_limit = (struct limit){
        LIMIT_FUNNEL, .count = 1, .period_us = GUARD_SECOND_US, .burst = GUARD_CAPACITY - 1};
    guarded.now_us = 1000 * GUARD_SECOND_US;
    stand_in.now_us = clock_us;
    guard_remake();
    cr_assert_eq(guarded.guard->capacity, GUARD_CAPACITY);
    cr_assert_eq(guarded.guard->lease, GUARD_LEASE);
}

void guard_fixture_teardown(void)
{
    guard_free(guarded.guard);
    fold_core_drop(guarded.core);
}

struct storage_job guard_write_of(const struct guard_charge *charges, size_t n_charges)
{
    struct storage_job job = {.op = STORAGE_WRITE,
        .deadline_ms = guarded.now_us / 1000 + DEADLINE_S * 1000,
        .done = on_done};
    job.u.write.charges = charges;
    job.u.write.n_charges = n_charges;
    return job;
}

void guard_answer(size_t i, int64_t granted, int64_t remaining, int64_t reset_us)
{
    cr_assert_lt(i, guarded.n_sent);
    guarded.sent[i]->u.limit.state = (struct limit_state){
        .allowed = granted > 0, .granted = granted, .remaining = remaining, .reset_us = reset_us};
    job_done(guarded.sent[i], STORAGE_OK);
}
