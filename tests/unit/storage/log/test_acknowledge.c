#include "storage/log/acknowledge.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/base/clock.h"

/* When a WAIT goes out.  What an answer to it does is tried in test_append.c. */

static struct core *core;
static struct appender a;

static void setup(void)
{
    core = calloc(1, sizeof(*core));
    cr_assert_not_null(core);
    core->config.ack_replicas = 1;
    a = (struct appender){.core = core};
}

static void teardown(void)
{
    free(core);
}

TestSuite(acknowledge, .init = setup, .fini = teardown, .timeout = 60);

Test(acknowledge, behind_whatever_is_written)
{
    cr_assert_not(acknowledge_wait_is_due(&a), "nothing is written, and nothing waits");
    a.n_out = 2;
    cr_assert(acknowledge_wait_is_due(&a));
    a.n_waits = 1;
    cr_assert(acknowledge_wait_is_due(&a), "what is written now is behind that one");
    core->config.ack_replicas = 0;
    cr_assert_not(acknowledge_wait_is_due(&a));
}

Test(acknowledge, again_while_answers_are_open)
{
    struct log_entry entry = {.next = NULL};
    a.unacknowledged = &entry;
    cr_assert(acknowledge_wait_is_due(&a));
    a.n_waits = 1;
    cr_assert_not(acknowledge_wait_is_due(&a), "it is asked already");
}

/* Each WAIT holds the connection up then.  Thousands of entries may go again after a failover. */
Test(acknowledge, while_too_few_do_what_goes_again_comes_first)
{
    a.lag_ms = 1;
    a.n_out = a.n_sent = 2;
    struct log_entry last = {.state = ENTRY_WAITING};
    a.last = &last;
    cr_assert_not(acknowledge_wait_is_due(&a), "some are still to be sent");
    last.state = ENTRY_SENT;
    cr_assert(acknowledge_wait_is_due(&a), "all are sent");
    a.n_waits = 1;
    cr_assert_not(acknowledge_wait_is_due(&a), "one at a time");
    a.n_out = a.n_sent = a.n_waits = 0;
    cr_assert(acknowledge_wait_is_due(&a), "until enough acknowledge");
}

/* ---- while a round of folds is under way that questions wait for ---- */

static struct unfolded unfolded;
static struct log_entry entry;
static struct storage_job job;
static unsigned n_woken;

static void wake(void *data)
{
    (void)data;
    n_woken++;
}

/* An entry of one request of @events without a key, answered @age_ms ago.  Is its job done? */
static bool is_told(size_t events, size_t n_keyed, int64_t age_ms, int64_t left_ms)
{
    int64_t now_ms = monotonic_ms();
    core->config.ack_replicas = 0;
    job = (struct storage_job){.deadline_ms = now_ms + left_ms};
    entry = (struct log_entry){.state = ENTRY_ANSWERED,
        .is_let_fold = true,
        .n = 7,
        .n_plain = events,
        .n_keyed = n_keyed,
        .jobs = &job,
        .answered_ms = now_ms - age_ms};
    struct entry_keyed keyed[1] = {{.is_in = true}};
    entry.keyed = keyed;
    a.unfolded = &unfolded;
    a.unacknowledged = &entry;
    a.done = (struct job_queue){0};
    acknowledge_or_keep(&a);
    entry.keyed = NULL;
    return a.done.first == &job && job.err == STORAGE_OK;
}

static void setup_kept(void)
{
    unfolded_init(&unfolded, &core->stats);
    unfolded_on_room(&unfolded, wake, NULL);
    n_woken = 0;
}

static void teardown_kept(void)
{
    unfolded_release(&unfolded);
}

Test(acknowledge, large_requests_wait_for_a_round, .init = setup_kept, .fini = teardown_kept)
{
    cr_expect(is_told(1000, 0, 0, 5000), "no round");
    unfolded_keep(&unfolded);
    unfolded.logs[0].last = 7;
    cr_expect_not(is_told(1000, 0, 0, 5000));
    acknowledge_or_keep(&a);
    cr_expect_null(a.done.first);
    cr_expect_eq(n_woken, 0u);
    cr_expect(unfolded_end_keep(&unfolded), "nothing was told");
    cr_expect_eq(n_woken, 1u);
    acknowledge_or_keep(&a);
    cr_expect(a.done.first == &job && a.unacknowledged == NULL);
    cr_expect(unfolded_end_keep(&unfolded) == false, "it is told by now");
    unfolded_keep(&unfolded);
    cr_expect(unfolded_end_keep(&unfolded), "nothing since");
    cr_expect_eq(n_woken, 1u, "nobody waited");
}

Test(acknowledge, what_is_told_during_a_round, .init = setup_kept, .fini = teardown_kept)
{
    static const struct {
        size_t events, n_keyed;
        int64_t age_ms, left_ms;
        const char *what;
    } cases[] = {{99, 0, 0, 5000, "a small one"}, {1000, 1, 0, 5000, "one with a key"},
        {1000, 0, 150, 5000, "the round takes too long"}, {1000, 0, 0, 90, "its time is up soon"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unfolded_keep(&unfolded);
        cr_expect(is_told(cases[i].events, cases[i].n_keyed, cases[i].age_ms, cases[i].left_ms),
            "%s", cases[i].what);
        cr_expect_not(unfolded_end_keep(&unfolded), "%s", cases[i].what);
    }
}

/* What was put in before the round began is counted by it. */
Test(acknowledge, what_the_round_counts_is_told, .init = setup_kept, .fini = teardown_kept)
{
    unfolded.logs[0].last = 7;
    unfolded_keep(&unfolded);
    cr_expect(is_told(1000, 0, 0, 5000), "entry 7");
    cr_expect(unfolded_end_keep(&unfolded), "and the round's word holds");
    unfolded.logs[0].last = 6;
    unfolded_keep(&unfolded);
    unfolded.logs[0].last = 7;
    cr_expect_not(is_told(1000, 0, 0, 5000));
    cr_expect(unfolded_end_keep(&unfolded));
    cr_expect_eq(n_woken, 1u);
}

Test(acknowledge, at_once_where_the_connection_is_lost, .init = setup_kept, .fini = teardown_kept)
{
    unfolded_keep(&unfolded);
    cr_expect_not(is_told(1000, 0, 0, 5000));
    acknowledge_kept(&a);
    cr_expect_eq(a.done.first, &job);
    cr_expect_not(unfolded_end_keep(&unfolded));
}

/* Whoever repeats a request with a key is told by its record. */
Test(acknowledge, what_others_may_tell, .init = setup_kept, .fini = teardown_kept)
{
    unfolded_keep(&unfolded);
    unfolded_shows(&unfolded, 0, 1);
    cr_expect_not(unfolded_end_keep(&unfolded));
}

Test(acknowledge, what_replicas_have_is_told, .init = setup_kept, .fini = teardown_kept)
{
    struct reply reply = {.type = REPLY_INTEGER, .integer = 1};
    unfolded_keep(&unfolded);
    cr_expect_not(is_told(1000, 0, 0, 5000));
    core->config.ack_replicas = 1;
    a.n_waits = 1;
    a.core->is_spread = false;
    acknowledge_or_keep(&a);
    cr_expect_null(a.done.first, "that is for acknowledge_take_wait()");
    cr_expect(acknowledge_take_wait(&a, &reply, 0));
    cr_expect_eq(a.done.first, &job);
    cr_expect_not(unfolded_end_keep(&unfolded));
}

Test(acknowledge, one_of_two_replicas_is_too_few, .init = setup_kept, .fini = teardown_kept)
{
    struct reply one = {.type = REPLY_INTEGER, .integer = 1};
    struct reply two = {.type = REPLY_INTEGER, .integer = 2};
    unfolded_keep(&unfolded);
    cr_expect_not(is_told(1000, 0, 0, 5000));
    core->config.ack_replicas = 2;
    a.n_waits = 2;
    a.core->is_spread = false;
    cr_expect(acknowledge_take_wait(&a, &one, 500));
    cr_expect_null(a.done.first);
    cr_expect_eq(a.lag_ms, 500, "since then too few have answered");
    cr_expect(acknowledge_take_wait(&a, &two, 600));
    cr_expect_eq(a.done.first, &job);
    cr_expect_eq(a.lag_ms, 0);
}
