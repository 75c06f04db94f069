/* Which runs of a portion are recalled, and what is added up then. */
#include "storage/count/recall.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/count/whole.h"
#include "storage/time/units.h"

TestSuite(recall, .timeout = 60);

#define NOON_S   (20000 * 24 * HOUR_S + 12 * HOUR_S)
#define VISITS   (1u << METRIC_VISITS | 1u << METRIC_SECONDS)
#define PORTIONS 9

static struct core core;
static struct proved_partition known[PORTIONS];
static struct portion portions[PORTIONS];
/* An hour that is closed, and two minutes of the one that is open. */
static struct bucket buckets[] = {{LEVEL_HOUR, NOON_S - HOUR_S, NOON_S},
    {LEVEL_MINUTE, NOON_S, NOON_S + 60}, {LEVEL_MINUTE, NOON_S + 60, NOON_S + 120}};
static size_t ends[] = {3};
static const struct slice *whole_site[] = {&count_whole_site};
static struct count_job job = {.asked = {.site = {"s", 1}}};
static struct count_question q;

static void setup(void)
{
    core.cache = cache_new(1 << 16);
    core.partitions.n = PORTIONS;
    q = (struct count_question){.read = {.core = &core, .zone = zone_utc(), .known = known},
        .job = &job,
        .portions = portions,
        .n_portions = PORTIONS};
    buffer_init(&q.scratch);
    buffer_init(&q.parts);
    buffer_init(&q.read.out);
    cr_assert(
        tally_cut(&q.tally, zone_utc(), STEP_NONE, (struct window){NOON_S - HOUR_S, NOON_S + 120}));
    tally_clear(&q.tally);
    for (unsigned i = 0; i < PORTIONS; i++) {
        known[i] = (struct proved_partition){.view = {.known = true,
                                                 .state = rollup_state_initial(NOON_S),
                                                 .ver = {2, "v1"},
                                                 .over = {2, "o1"},
                                                 .over_held = true}};
        portions[i] = (struct portion){.partition = i,
            .metrics = VISITS,
            .pages = whole_site,
            .n_pages = 1,
            .ends = ends,
            .cover = {.buckets = buckets, .n = 3}};
    }
}

static void teardown(void)
{
    for (unsigned i = 0; i < PORTIONS; i++) {
        runs_release(&portions[i].runs);
    }
    runs_release(&q.found.runs);
    free(q.wholes);
    free(q.whole_sums);
    buffer_release(&q.parts);
    buffer_release(&q.scratch);
    buffer_release(&q.read.out);
    tally_release(&q.tally);
    cache_free(core.cache);
}

/* The hour of portion 0 has been read. */
static void keep(enum metric metric, uint64_t sum)
{
    q.run_sum[metric] = sum;
    cr_assert(count_keep_run(&q, metric, &portions[0], &portions[0].runs.all[0], 0));
}

static void plan_again(void)
{
    portions[0].runs.n = 0;
    q.found.plan = NULL;
    tally_clear(&q.tally);
    cr_assert(count_recall_runs(&q, &portions[0], 0, 3, 0));
    cr_assert_eq(portions[0].runs.n, 1u);
}

Test(recall, sums_are_recalled_together, .init = setup, .fini = teardown)
{
    plan_again();
    cr_expect_not(portions[0].runs.all[0].recalled);
    keep(METRIC_VISITS, 3);
    keep(METRIC_SECONDS, 50);
    plan_again();
    cr_expect(portions[0].runs.all[0].recalled);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u);
    cr_expect_eq(tally_total(&q.tally, METRIC_SECONDS), 50u);
}

/* The cache has forgotten the other one: both are read, so neither is added. */
Test(recall, a_sum_is_not_recalled_without_the_others, .init = setup, .fini = teardown)
{
    plan_again();
    keep(METRIC_VISITS, 3);
    plan_again();
    cr_expect_not(portions[0].runs.all[0].recalled);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 0u);
}

/* Portions with one plan have the same runs only where the same minutes are over. */
Test(recall, runs_follow_what_is_over_in_their_partition, .init = setup, .fini = teardown)
{
    known[1].view.over_s = NOON_S + 60;
    known[2].view.over_s = NOON_S + 120;
    for (unsigned i = 0; i < 3; i++) {
        cr_assert(count_recall_runs(&q, &portions[i], 0, 3, 0));
    }
    cr_assert(portions[0].runs.n == 1 && portions[1].runs.n == 2 && portions[2].runs.n == 2);
    cr_expect_eq(portions[1].runs.all[1].n, 1u);
    cr_expect_eq(portions[2].runs.all[1].n, 2u);
}

/* Minutes that are open are remembered of all partitions together alone. */
Test(recall, a_portion_alone_has_no_run_of_open_minutes, .init = setup, .fini = teardown)
{
    portions[PORTIONS - 1].metrics = 1u << METRIC_PV;
    for (unsigned i = 0; i < PORTIONS; i++) {
        known[i].view.fold = (struct ver){2, "f1"};
    }
    cr_assert(count_recall_point(&q, 0));
    cr_expect_eq(portions[0].runs.n, 2u);
    cr_expect_eq(portions[PORTIONS - 1].runs.n, 1u);
}

/* Its id has changed while it was read: it must not be in a sum of all partitions either. */
Test(recall, what_is_not_kept_is_no_part_of_a_whole, .init = setup, .fini = teardown)
{
    cr_assert(count_recall_point(&q, 0));
    cr_assert_gt(q.n_wholes, 0u);
    known[0].changed = 1u << PROOF_VER;
    keep(METRIC_VISITS, 3);
    cr_expect_eq(q.wholes[0].added[METRIC_VISITS], 0u);
    known[0].changed = 0;
    keep(METRIC_VISITS, 3);
    cr_expect_eq(q.wholes[0].added[METRIC_VISITS], 1u);
    cr_expect_eq(q.wholes[0].sums[METRIC_VISITS], 3u);
}
