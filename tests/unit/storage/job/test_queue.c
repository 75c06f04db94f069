#include "storage/job/queue.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "tests/lib/dice.h"

TestSuite(job_queue, .timeout = 60);

#define JOBS 64

struct scene {
    struct job_queue queue;
    struct storage_job jobs[JOBS];
};

/* Jobs of these costs, ended by 0; the deadlines are 10, 20, 30.. */
static void fill(struct scene *s, const size_t *costs)
{
    memset(s, 0, sizeof(*s));
    for (size_t i = 0; costs[i] != 0; i++) {
        s->jobs[i].cost = costs[i];
        s->jobs[i].deadline_ms = 10 * ((int64_t)i + 1);
        job_queue_append(&s->queue, &s->jobs[i]);
    }
}

/* @list is the jobs of @from up to, not with, @to. */
static void check_list(
    const struct scene *s, const struct storage_job *list, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        cr_assert_eq(list, &s->jobs[i], "job %zu", i);
        list = list->next;
    }
    cr_assert_null(list);
}

static void check_rest(const struct scene *s, size_t from, size_t to)
{
    size_t events = 0;
    check_list(s, s->queue.first, from, to);
    for (size_t i = from; i < to; i++) {
        events += s->jobs[i].cost;
    }
    cr_expect_eq(s->queue.events, events);
    cr_expect_eq(s->queue.last, from == to ? NULL : &s->jobs[to - 1]);
}

/* ---- taking ---- */

Test(job_queue, empty)
{
    struct scene s;
    fill(&s, (size_t[]){0});
    cr_expect_null(job_queue_take(&s.queue, 10));
    cr_expect_null(job_queue_take_late(&s.queue, INT64_MAX));
    cr_expect_eq(job_queue_due_ms(&s.queue), INT64_MAX);
    check_rest(&s, 0, 0);
}

Test(job_queue, the_earliest_deadline)
{
    struct scene s;
    fill(&s, (size_t[]){1, 1, 1, 0});
    s.jobs[1].deadline_ms = 5;
    cr_expect_eq(job_queue_due_ms(&s.queue), 5);
}

Test(job_queue, one_is_removed)
{
    struct scene s;
    fill(&s, (size_t[]){3, 4, 5, 0});
    cr_expect_eq(job_queue_remove(&s.queue, &s.jobs[1]), &s.jobs[2]); /* the last */
    cr_expect_null(s.jobs[2].next);
    check_rest(&s, 0, 2);
    cr_expect_eq(job_queue_remove(&s.queue, NULL), &s.jobs[0]);
    check_rest(&s, 1, 2);
    cr_expect_eq(job_queue_remove(&s.queue, NULL), &s.jobs[1]);
    check_rest(&s, 0, 0);
    job_queue_append(&s.queue, &s.jobs[0]);
    check_rest(&s, 0, 1);
}

Test(job_queue, takes_the_oldest_that_fit)
{
    static const struct {
        size_t costs[6], max, taken;
    } cases[] = {
        {{1, 1, 1}, 2, 2},
        {{1, 1, 1}, 3, 3},
        {{1, 1, 1}, 100, 3},
        {{5, 5, 1}, 9, 1},
        {{5, 5, 1}, 10, 2},
        {{5, 6, 1}, 10, 1}, /* not the third past the second */
        {{11, 1}, 10, 1},   /* one at least */
        {{11, 1}, 0, 1},
        {{1}, 0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene s;
        size_t n = 0;
        fill(&s, cases[i].costs);
        while (cases[i].costs[n] != 0) {
            n++;
        }
        check_list(&s, job_queue_take(&s.queue, cases[i].max), 0, cases[i].taken);
        check_rest(&s, cases[i].taken, n);
    }
}

Test(job_queue, can_be_filled_again)
{
    struct scene s;
    fill(&s, (size_t[]){1, 2, 3, 0});
    check_list(&s, job_queue_take(&s.queue, 100), 0, 3);
    s.jobs[3].cost = 4;
    job_queue_append(&s.queue, &s.jobs[3]);
    check_rest(&s, 3, 4);
    check_list(&s, job_queue_take_late(&s.queue, 0), 3, 4);
    s.jobs[4].cost = 5;
    job_queue_append(&s.queue, &s.jobs[4]);
    check_rest(&s, 4, 5);
}

Test(job_queue, forgets_where_a_job_was_before)
{
    struct scene s;
    fill(&s, (size_t[]){1, 0});
    s.jobs[1] = (struct storage_job){.cost = 1, .next = &s.jobs[5]};
    job_queue_append(&s.queue, &s.jobs[1]);
    check_rest(&s, 0, 2);
}

/* ---- those whose time is up ---- */

Test(job_queue, late_from_any_place)
{
    struct scene s;
    fill(&s, (size_t[]){1, 2, 4, 8, 0});
    cr_expect_null(job_queue_take_late(&s.queue, 9));
    check_rest(&s, 0, 4);
    check_list(&s, job_queue_take_late(&s.queue, 10), 0, 1);
    check_rest(&s, 1, 4);
    s.jobs[2].deadline_ms = s.jobs[3].deadline_ms = 15;
    check_list(&s, job_queue_take_late(&s.queue, 16), 2, 4);
    check_rest(&s, 1, 2);
}

/* ---- property ---- */

/* Against an array of the jobs that wait. */
Test(job_queue, agrees_with_an_array)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct scene s = {0};
    size_t waiting[JOBS];
    size_t n = 0;
    bool used[JOBS] = {false};
    for (int step = 0; step < 20000; step++) {
        size_t job = (size_t)dice_below(&dice, JOBS);
        size_t max = (size_t)dice_below(&dice, 30);
        int64_t now_ms = dice_below(&dice, 120);
        struct storage_job *list = NULL;
        bool late = dice_chance(&dice, 300);
        size_t kept = 0;
        size_t events = 0;
        if (dice_chance(&dice, 800)) {
            if (!used[job]) {
                s.jobs[job].cost = (size_t)dice_below(&dice, 10) + 1;
                s.jobs[job].deadline_ms = dice_below(&dice, 400);
                job_queue_append(&s.queue, &s.jobs[job]);
                waiting[n++] = job;
                used[job] = true;
            }
        } else {
            list = late ? job_queue_take_late(&s.queue, now_ms) : job_queue_take(&s.queue, max);
            bool more = true;
            for (size_t i = 0; i < n; i++) {
                struct storage_job *j = &s.jobs[waiting[i]];
                more = more && (i == 0 || events + j->cost <= max);
                if (late ? j->deadline_ms <= now_ms : more) {
                    cr_assert_eq(list, j, "TALLYD_TEST_SEED=%" PRIu64, seed);
                    list = list->next;
                    events += j->cost;
                    used[waiting[i]] = false;
                } else {
                    waiting[kept++] = waiting[i];
                }
            }
            cr_assert_null(list, "TALLYD_TEST_SEED=%" PRIu64, seed);
            n = kept;
        }
        events = 0;
        for (size_t i = 0; i < n; i++) {
            events += s.jobs[waiting[i]].cost;
        }
        cr_assert_eq(s.queue.events, events, "TALLYD_TEST_SEED=%" PRIu64, seed);
        cr_assert_eq(s.queue.last, n == 0 ? NULL : &s.jobs[waiting[n - 1]],
            "TALLYD_TEST_SEED=%" PRIu64, seed);
    }
}
