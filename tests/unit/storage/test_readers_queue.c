/* Which jobs that wait are answered together with one that is begun. */
#include "storage/readers_queue.h"

#include <criterion/criterion.h>

TestSuite(readers_queue, .timeout = 60);

#define JOBS 6

static bool same_question(const struct storage_job *a, const struct storage_job *b)
{
    return a->question == b->question;
}

static struct operation operations[STORAGE_OPS];
static struct readers readers;
static struct storage_job jobs[JOBS];

/* jobs[0] is begun.  The others wait, ask the same, and have the same deadline. */
static void setup(void)
{
    operations[STORAGE_COUNT].same = operations[STORAGE_PAGES].same = same_question;
    readers.operations = operations;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct storage_job){.op = STORAGE_COUNT,
            .question = 7,
            .deadline_ms = 5000,
            .arrived_us = 100 + i,
            .cost = 1};
        if (i > 0) {
            job_queue_append(&readers.waiting, &jobs[i]);
        }
    }
}

/* The numbers of @list, a digit each. */
static unsigned numbers(const struct storage_job *list)
{
    unsigned all = 0;
    for (; list != NULL; list = list->next) {
        all = all * 10 + (unsigned)(list - jobs);
    }
    return all;
}

Test(readers_queue, all_that_ask_the_same_are_taken, .init = setup)
{
    cr_expect_eq(numbers(readers_take_same(&readers, &jobs[0], NULL)), 12345u);
    cr_expect_null(readers.waiting.first);
    cr_expect_eq(readers.waiting.events, 0u);
}

/* The answer comes by the deadline of the job that is begun. */
Test(readers_queue, who_has_less_time_is_not_taken, .init = setup)
{
    jobs[2].deadline_ms--;
    jobs[3].deadline_ms++;
    cr_expect_eq(numbers(readers_take_same(&readers, &jobs[0], NULL)), 1345u);
    cr_expect_eq(numbers(readers.waiting.first), 2u);
}

Test(readers_queue, another_question_is_not_taken, .init = setup)
{
    jobs[1].question = 8;
    jobs[4].op = STORAGE_PAGES;
    cr_expect_eq(numbers(readers_take_same(&readers, &jobs[0], NULL)), 235u);
    cr_expect_eq(numbers(readers.waiting.first), 14u);
    cr_expect_eq(readers.waiting.last, &jobs[4]);
}

Test(readers_queue, an_operation_whose_answers_are_not_shared, .init = setup)
{
    operations[STORAGE_COUNT].same = NULL;
    cr_expect_null(readers_take_same(&readers, &jobs[0], NULL));
    cr_expect_eq(numbers(readers.waiting.first), 12345u);
}

/* What was acknowledged before the last of them came is in the answer, whichever of them is read.
 */
Test(readers_queue, all_have_come_when_the_last_one_came, .init = setup)
{
    jobs[3].arrived_us = 900;
    jobs[5].question = 8;
    cr_expect_eq(numbers(readers_take_same(&readers, &jobs[0], NULL)), 1234u);
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(jobs[i].arrived_us, 900, "job %d", i);
    }
    cr_expect_eq(jobs[5].arrived_us, 105);
}
