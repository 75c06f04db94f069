#include "storage/storage.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/base/clock.h"

TestSuite(storage, .timeout = 60);

/* A storage whose Redis is not there. */
static struct storage *open_storage(void)
{
    struct storage_config config = {.redis_url = "unix:/nonexistent/redis.sock",
        .partitions = 2,
        .retention = {{[LEVEL_MINUTE] = 172800,
            [LEVEL_HOUR] = 5356800,
            [LEVEL_DAY] = 95040000,
            [LEVEL_MONTH] = KEEP_FOREVER}},
        .visit_timeout_s = 1800,
        .queue_events = 1000,
        .readers = 1};
    const char *error = NULL;
    struct storage *storage = storage_open(&config, &error);
    cr_assert_not_null(storage, "%s", error);
    return storage;
}

static void note_done(struct storage_job *job)
{
    *(bool *)job->data = true;
}

static enum storage_err submit(struct storage *storage, struct storage_job *job)
{
    bool done = false;
    job->done = note_done;
    job->data = &done;
    job->deadline_ms = monotonic_ms() + 60000;
    storage_submit(storage, job);
    cr_assert(done, "the job was taken");
    return job->err;
}

/* ---- the end ---- */

Test(storage, no_job_is_taken_after_the_drain)
{
    struct storage *storage = open_storage();
    storage_drain(storage, monotonic_ms() + 30000); /* nothing waits: it is over before that */
    for (int64_t want = 0; want <= 1; want++) {
        struct storage_job limit = {.op = STORAGE_LIMIT};
        limit.u.limit.limit = (struct limit){LIMIT_FUNNEL, 10, 1000000, 10};
        limit.u.limit.key = SLICE("somebody");
        limit.u.limit.want = want;
        cr_expect_eq(submit(storage, &limit), STORAGE_SHUTDOWN, "want %d", (int)want);
    }
    struct slice none = SLICE("");
    struct storage_job reset = {.op = STORAGE_LIMIT_RESET};
    reset.u.limit_reset = (struct limit_reset_job){SLICE("somebody"), &none, 1};
    cr_expect_eq(submit(storage, &reset), STORAGE_SHUTDOWN);
    struct storage_job sites = {.op = STORAGE_SITES};
    cr_expect_eq(submit(storage, &sites), STORAGE_SHUTDOWN);
    storage_close(storage);
}

/* ---- the guard ---- */

Test(storage, without_a_guard_all_is_admitted)
{
    struct storage *storage = open_storage();
    struct guard_charge charge = {SLICE("somebody"), INT64_MAX};
    struct limit limit = {LIMIT_FUNNEL, 1, 1000000, 0};
    struct limit_state state;
    cr_expect_eq(storage_guard_try(storage, &charge, 1, &state), GUARD_ADMITTED);
    cr_expect(state.allowed);
    cr_expect_not(storage_guard_closed(storage, charge.who, &state));
    storage_guard_peek(storage, charge.who, &state);
    cr_expect(state.allowed);
    storage_guard_set_limit(storage, &limit);
    cr_expect_eq(storage_guard_try(storage, &charge, 1, &state), GUARD_ADMITTED);
    storage_drain(storage, monotonic_ms());
    storage_close(storage);
}

/* ---- what cannot be opened ---- */

Test(storage, an_url_that_is_none_is_named)
{
    struct storage_config config = {.redis_url = "http://127.0.0.1", .partitions = 2, .readers = 1};
    const char *error = NULL;
    cr_expect_null(storage_open(&config, &error));
    cr_expect_not_null(strstr(error, "Redis URL"), "%s", error);
}
