/* What waits for the threads that send rate limits, and their end.  storage/limit/senders.h */
#include "storage/limit/senders.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <time.h>

#include "storage/base/clock.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

#define JOBS        3
#define NOT_DONE    (-1)
#define PATIENCE_MS 5000

TestSuite(senders, .timeout = 30);

static struct storage_job jobs[JOBS];
static atomic_int ended[JOBS]; /* an enum storage_err, or NOT_DONE */
static atomic_bool is_connecting;

static void await(const atomic_bool *flag)
{
    int64_t deadline_ms = monotonic_ms() + PATIENCE_MS;
    while (!atomic_load(flag) && monotonic_ms() < deadline_ms) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static atomic_bool second_has_ended;

/* No server is there.  To find that out takes until the second job has ended. */
static bool connect(void)
{
    atomic_store(&is_connecting, true);
    await(&second_has_ended);
    return false;
}

static void on_done(struct storage_job *job)
{
    size_t i = (size_t)(job - jobs);
    cr_expect_eq(atomic_load(&ended[i]), NOT_DONE, "once");
    atomic_store(&ended[i], (int)job->err);
    atomic_store(&second_has_ended, i == 1);
}

static bool submit(struct limit_senders *senders, size_t i, enum storage_err *ret_err)
{
    atomic_store(&ended[i], NOT_DONE);
    jobs[i] = (struct storage_job){
        .op = STORAGE_LIMIT, .done = on_done, .deadline_ms = monotonic_ms() + 2 * PATIENCE_MS};
    jobs[i].u.limit =
        (struct limit_job){.limit = {.algorithm = LIMIT_SLIDING, .count = 5, .period_us = 1000000},
            .key = SLICE("k"),
            .need = 1,
            .want = 1};
    return limit_senders_submit(senders, &jobs[i], ret_err);
}

/* Senders that have the first job at hand, with room for @queue jobs behind it. */
static struct limit_senders *begin(struct core *core, size_t queue)
{
    enum storage_err err = STORAGE_OK;
    core->config.queue_events = queue;
    stand_in.connect = connect;
    struct limit_senders *senders = limit_senders_start(core, NULL);
    cr_assert_not_null(senders);
    cr_assert(submit(senders, 0, &err));
    await(&is_connecting);
    cr_assert(atomic_load(&is_connecting));
    return senders;
}

/* The first job is at hand, the second one waits behind it.  Neither has gone to Redis. */
Test(senders, what_is_not_sent_by_the_deadline_ends_with_the_service)
{
    enum storage_err err = STORAGE_OK;
    struct core *core = fold_core_make(1);
    struct limit_senders *senders = begin(core, 2);
    cr_assert(submit(senders, 1, &err));
    limit_senders_drain(senders, monotonic_ms());
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(atomic_load(&ended[i]), (int)STORAGE_SHUTDOWN, "job %zu", i);
    }
    cr_expect_not(submit(senders, 2, &err));
    cr_expect_eq(err, STORAGE_SHUTDOWN);
    cr_expect_eq(atomic_load(&core->stats.queue_refused), 0);
    limit_senders_stop(senders);
    fold_core_drop(core);
}

/* The first job is at hand.  Behind it there is room for one. */
Test(senders, what_has_no_room_is_refused_and_counted)
{
    enum storage_err err = STORAGE_OK;
    struct core *core = fold_core_make(1);
    struct limit_senders *senders = begin(core, 1);
    cr_expect(submit(senders, 1, &err));
    cr_expect_not(submit(senders, 2, &err));
    cr_expect_eq(err, STORAGE_FULL);
    cr_expect_eq(atomic_load(&core->stats.queue_refused), 1);
    limit_senders_drain(senders, monotonic_ms());
    cr_expect_eq(atomic_load(&ended[2]), NOT_DONE, "its caller knows already");
    limit_senders_stop(senders);
    fold_core_drop(core);
}
