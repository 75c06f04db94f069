#include "storage/read/answers.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/core/core.h"
#include "storage/operations.h"

TestSuite(answers, .timeout = 60);

static struct core core;
static struct reader reader;

/* A reader whose connection stood before it looked at the logs. */
static void look(char print)
{
    int64_t now_us = monotonic_us();
    reader.core = &core;
    reader.session.opened_us = now_us - 2000;
    reader.settled.moment =
        (struct settled_moment){.is_known = true, .read_us = now_us - 1000, .minute = 7};
    reader.settled.moment.print.bytes[3] = (uint8_t)print;
}

static struct storage_job ask(const char *site)
{
    struct storage_job job = {.op = STORAGE_COUNT};
    job.u.count = (struct count_job){
        .asked = {.site = slice_of(site), .window = {60, 120}}, .metric = METRIC_VISITS};
    job.question = storage_operations[STORAGE_COUNT].hash(&job);
    return job;
}

static bool recall(struct storage_job *job)
{
    const struct operation *operation = &storage_operations[job->op];
    return answers_recall(&reader, operation->same, operation->share, job);
}

static void keep(struct storage_job *job, uint64_t value)
{
    const struct operation *operation = &storage_operations[job->op];
    job->u.count.values[METRIC_UV] = value;
    answers_keep(&reader, operation->own, operation->share, job);
}

static void begin(void)
{
    core.answers = answers_new();
    cr_assert_not_null(core.answers);
    look('a');
    struct storage_job job = ask("site");
    keep(&job, 42);
}

Test(answers, the_same_question_at_the_same_moment)
{
    begin();
    char site[] = "site"; /* the bytes of the first one may be gone */
    struct storage_job job = ask(site);
    cr_assert(recall(&job));
    cr_expect_eq(job.u.count.values[METRIC_UV], 42);
    struct storage_job other = ask("sitf");
    cr_expect_not(recall(&other));
    answers_free(core.answers);
}

Test(answers, not_when_anything_was_acknowledged_deleted_or_forgotten)
{
    begin();
    struct storage_job job = ask("site");
    look('b');
    cr_expect_not(recall(&job));
    look('a');
    cr_expect(recall(&job));
    answers_free(core.answers);
}

Test(answers, not_where_it_was_not_known_what_is_counted)
{
    begin();
    struct storage_job job = ask("site");
    reader.settled.moment.is_known = false;
    cr_expect_not(recall(&job));
    struct storage_job other = ask("other");
    keep(&other, 5);
    look('a');
    cr_expect_not(recall(&other), "it was not remembered either");
    answers_free(core.answers);
}

Test(answers, not_in_another_minute)
{
    begin();
    struct storage_job job = ask("site");
    reader.settled.moment.minute = 8;
    cr_expect_not(recall(&job));
    answers_free(core.answers);
}

Test(answers, not_over_a_connection_that_was_made_later)
{
    begin();
    struct storage_job job = ask("site");
    reader.session.opened_us = monotonic_us();
    cr_expect_not(recall(&job));
    look('a');
    reader.session.opened_us = monotonic_us(); /* lost and made between the heads and the data */
    struct storage_job other = ask("other");
    keep(&other, 5);
    look('a');
    cr_expect_not(recall(&other));
    answers_free(core.answers);
}

Test(answers, not_for_ever)
{
    begin();
    struct storage_job job = ask("site");
    look('a');
    reader.settled.moment.read_us -= ANSWERS_US;
    reader.session.opened_us -= 2 * (int64_t)ANSWERS_US;
    keep(&job, 43);
    look('a');
    reader.session.opened_us -= 2 * (int64_t)ANSWERS_US;
    cr_expect_not(recall(&job));
    answers_free(core.answers);
}

Test(answers, of_a_page_set_nothing_is_remembered_nor_freed)
{
    begin();
    struct storage_job job = ask("site");
    job.u.count.set.name = SLICE("set");
    job.u.count.set.resolved = malloc(8);
    keep(&job, 5);
    cr_expect_not(recall(&job));
    storage_job_release(&job); /* once: a second time ends the program */
    answers_free(core.answers);
}

Test(answers, sizes_of_sets_and_days_are_copied)
{
    begin();
    struct slice actions[] = {SLICE("active")};
    struct activity_set sets[] = {{.n_actions = 1, .days = {100, 2}, .min_days = 1}};
    struct activity_count counts[] = {{0, 0, 77}};
    uint64_t users[] = {0, 8, 9};
    const struct activity_question asked = {
        .site = SLICE("site"), .actions = actions, .n_actions = 1, .sets = sets, .n_sets = 1};
    const struct operation *operation = &storage_operations[STORAGE_ACTIVITY];
    struct storage_job job = {.op = STORAGE_ACTIVITY,
        .u.activity = {.asked = asked, .counts = counts, .n_counts = 1, .oldest_day = 3}};
    job.question = operation->hash(&job);
    answers_keep(&reader, operation->own, operation->share, &job);
    counts[0].users = 0;
    cr_expect(recall(&job) && counts[0].users == 77 && job.u.activity.oldest_day == 3);
    sets[0].days.n = 1;
    cr_expect_not(recall(&job));

    sets[0].days.n = 2;
    operation = &storage_operations[STORAGE_FREQUENCY];
    struct storage_job often = {
        .op = STORAGE_FREQUENCY, .u.frequency = {.asked = asked, .users = users}};
    often.question = operation->hash(&often);
    answers_keep(&reader, operation->own, operation->share, &often);
    users[1] = users[2] = 0;
    cr_expect(recall(&often) && users[1] == 8 && users[2] == 9);
    sets[0].min_days = 2;
    cr_expect_not(recall(&often));
    answers_free(core.answers);
}
