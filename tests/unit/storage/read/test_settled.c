/* What is to be done for a question that needs everything counted, by what the folds have done. */
#include "storage/read/settled.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/base/clock.h"

#define MS INT64_C(1000)

struct world {
    struct core *core;
    struct session session;
    struct storage_job job;
    int64_t now_us;
};

/* Of a cluster: its connections are opened when they are needed. */
static struct dispatcher dispatcher;

static struct world begin(void)
{
    struct world w = {.core = calloc(1, sizeof(struct core)), .now_us = monotonic_us()};
    cr_assert_not_null(w.core);
    w.session.core = w.core;
    w.session.dispatcher = &dispatcher;
    w.job.arrived_us = w.now_us - 5 * MS;
    atomic_store(&w.core->settled_us, w.now_us - 20 * MS);
    return w;
}

static enum settled_outlook outlook(struct world *w)
{
    enum settled_outlook found = settled_outlook(w->core, &w->session, &w->job);
    free(w->core);
    return found;
}

/* The look at the heads lacks what was acknowledged behind it, and before the last job came. */
Test(settled, what_was_seen_before_the_last_job_came_is_no_moment)
{
    struct settled settled = {.moment = {.is_known = true, .read_us = 100}};
    struct storage_job job = {.arrived_us = 99};
    settled_joined(&settled, &job);
    cr_expect(settled.moment.is_known);
    job.arrived_us = 100;
    settled_joined(&settled, &job);
    cr_expect_not(settled.moment.is_known);
}

Test(settled, a_round_comes_for_what_waits_in_memory)
{
    struct world w = begin();
    atomic_store(&w.core->stats.log_events, 1);
    cr_assert_eq(outlook(&w), SETTLED_NEAR);
}

Test(settled, a_round_has_ended_that_was_enough)
{
    struct world w = begin();
    atomic_store(&w.core->stats.log_events, 1);
    w.job.arrived_us = w.now_us - 21 * MS;
    cr_assert_eq(outlook(&w), SETTLED_NOW);
}

Test(settled, where_nothing_waits_a_reader_finds_out)
{
    struct world w = begin();
    atomic_store(&w.core->folded_us, w.now_us - 10 * MS);
    cr_assert_eq(outlook(&w), SETTLED_BY_READER);
}

Test(settled, soon_after_a_fold_and_beside_other_questions_one_more_is_near)
{
    struct world w = begin();
    atomic_store(&w.core->questions, 1);
    atomic_store(&w.core->folded_us, w.now_us - 10 * MS);
    cr_assert_eq(outlook(&w), SETTLED_NEAR);
    w = begin();
    atomic_store(&w.core->questions, 1);
    atomic_store(&w.core->folded_us, w.now_us - 1000 * MS);
    cr_assert_eq(outlook(&w), SETTLED_BY_READER);
}

Test(settled, folds_that_do_not_end_are_not_waited_for_without_a_reader)
{
    struct world w = begin();
    atomic_store(&w.core->stats.log_events, 1);
    atomic_store(&w.core->settled_us, w.now_us - (SETTLED_NEAR_MS + 1) * MS);
    cr_assert_eq(outlook(&w), SETTLED_BY_READER);
}

Test(settled, a_reader_without_a_connection_makes_one_first)
{
    struct world w = begin();
    atomic_store(&w.core->stats.log_events, 1);
    w.session.dispatcher = NULL;
    cr_assert_eq(outlook(&w), SETTLED_BY_READER);
}

/* Redis may have gone back behind what was settled before. */
Test(settled, what_was_settled_over_an_earlier_connection_is_not_known)
{
    struct world w = begin();
    int64_t settled_us = w.now_us - 20 * MS;
    w.job.arrived_us = settled_us - 1;
    dispatcher.links.stood_us = settled_us - 1;
    cr_expect(settled_is_known(w.core, &w.session, &w.job));
    dispatcher.links.stood_us = settled_us;
    cr_expect_not(settled_is_known(w.core, &w.session, &w.job));
    dispatcher.links.stood_us = settled_us - 1;
    w.job.arrived_us = settled_us;
    cr_expect_not(settled_is_known(w.core, &w.session, &w.job), "the job came later");
    free(w.core);
}
