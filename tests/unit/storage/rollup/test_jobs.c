/* Requests for a pass: who is answered when, and each once. */
#include "storage/rollup/jobs.h"

#include <criterion/criterion.h>

TestSuite(rollup_jobs, .timeout = 60);

static int answered[3]; /* by job: how often */

static void on_done(struct storage_job *job)
{
    answered[(size_t)(job->data == NULL ? 0 : *(const int *)job->data)]++;
}

static const int numbers[] = {0, 1, 2};

static struct storage_job job_of(int n, int64_t deadline_ms)
{
    return (struct storage_job){.op = STORAGE_ROLLUP_RUN,
        .deadline_ms = deadline_ms,
        .done = on_done,
        .data = (void *)(uintptr_t)&numbers[n]};
}

Test(rollup_jobs, a_pass_answers_those_that_waited_when_it_began)
{
    struct rollup_jobs jobs;
    struct rollup_job result = {.fencing_token = 42};
    struct storage_job a = job_of(0, 100);
    struct storage_job b = job_of(1, 100);
    rollup_jobs_init(&jobs);
    cr_expect_not(rollup_jobs_any(&jobs));
    rollup_jobs_begin(&jobs);
    cr_expect_not(rollup_jobs_begun(&jobs));
    cr_expect(rollup_jobs_add(&jobs, &a));
    cr_expect_not(rollup_jobs_begun(&jobs));
    rollup_jobs_begin(&jobs);
    cr_expect(rollup_jobs_begun(&jobs));
    cr_expect(rollup_jobs_add(&jobs, &b));
    rollup_jobs_finish(&jobs, STORAGE_OK, &result);
    cr_expect_not(rollup_jobs_begun(&jobs));
    cr_expect(answered[0] == 1 && a.err == STORAGE_OK && a.u.rollup.fencing_token == 42);
    cr_expect(answered[1] == 0 && rollup_jobs_any(&jobs), "it came too late for that one");
    rollup_jobs_begin(&jobs);
    cr_expect(rollup_jobs_begun(&jobs));
    rollup_jobs_finish(&jobs, STORAGE_DOWN, NULL);
    cr_expect(answered[0] == 1 && answered[1] == 1 && b.err == STORAGE_DOWN);
    cr_expect_not(rollup_jobs_any(&jobs));
    rollup_jobs_close(&jobs);
    rollup_jobs_release(&jobs);
}

/* As the leader does. */
static int64_t answer_late(struct rollup_jobs *jobs, int64_t now_ms)
{
    struct storage_job *late = NULL;
    int64_t next_ms = rollup_jobs_take_late(jobs, now_ms, &late);
    jobs_done(late, STORAGE_UNKNOWN);
    return next_ms;
}

Test(rollup_jobs, late_ones_are_answered_begun_or_not)
{
    struct rollup_jobs jobs;
    struct storage_job a = job_of(0, 100);
    struct storage_job b = job_of(1, 200);
    struct storage_job c = job_of(2, 300);
    rollup_jobs_init(&jobs);
    cr_expect_eq(answer_late(&jobs, 0), INT64_MAX);
    cr_expect(rollup_jobs_add(&jobs, &b));
    rollup_jobs_begin(&jobs);
    cr_expect(rollup_jobs_add(&jobs, &a) && rollup_jobs_add(&jobs, &c));
    cr_expect_eq(answer_late(&jobs, 99), 100);
    cr_expect_eq(answered[0] + answered[1] + answered[2], 0);
    cr_expect_eq(answer_late(&jobs, 100), 200);
    cr_expect(answered[0] == 1 && a.err == STORAGE_UNKNOWN);
    cr_expect(rollup_jobs_begun(&jobs));
    cr_expect_eq(answer_late(&jobs, 250), 300);
    cr_expect(rollup_jobs_any(&jobs) && !rollup_jobs_begun(&jobs), "what is left came later");
    cr_expect(answered[1] == 1 && b.err == STORAGE_UNKNOWN && answered[2] == 0);
    rollup_jobs_finish(&jobs, STORAGE_OK, &(struct rollup_job){0});
    cr_expect(answered[0] == 1 && answered[1] == 1, "nobody twice");
    rollup_jobs_close(&jobs);
    cr_expect(answered[2] == 1 && c.err == STORAGE_SHUTDOWN);
    cr_expect_not(rollup_jobs_add(&jobs, &a), "no more");
    rollup_jobs_release(&jobs);
}
