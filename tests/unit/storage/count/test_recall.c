/* Which runs of a portion are recalled, and what is added up then. */
#include "storage/count/recall.h"

#include <criterion/criterion.h>
#include <stdlib.h>

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
    kept_parts_release(&q.parts);
    buffer_release(&q.scratch);
    buffer_release(&q.read.out);
    tally_release(&q.tally);
    cache_free(core.cache);
}

/* An attempt of the question about visits. */
static void plan_again(void)
{
    kept_parts_keep(&q.parts);
    kept_parts_release(&q.parts);
    kept_parts_begin(&q.parts, &q.read, cache_id(core.cache, "visits", 6), SIZE_MAX, SIZE_MAX);
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].runs.n = 0;
    }
    q.found.plan = NULL;
    q.n_wholes = 0;
    tally_clear(&q.tally);
    cr_assert(count_recall_point(&q, 0));
}

/* Portion @i has read its run number @run: 3 visits, 50 seconds. */
static void keep(unsigned i, size_t run)
{
    q.run_sum[METRIC_VISITS] = 3;
    q.run_sum[METRIC_SECONDS] = 50;
    cr_assert(count_keep_run(&q, METRIC_VISITS, &portions[i], &portions[i].runs.all[run], 0));
    cr_assert(count_keep_run(&q, METRIC_SECONDS, &portions[i], &portions[i].runs.all[run], 0));
}

Test(recall, what_a_portion_of_visits_has_is_recalled, .init = setup, .fini = teardown)
{
    plan_again();
    cr_assert_eq(portions[0].runs.n, 1u);
    cr_expect_not(portions[0].runs.all[0].recalled);
    for (unsigned i = 0; i < PORTIONS - 1; i++) {
        keep(i, 0);
    }
    plan_again();
    for (unsigned i = 0; i < PORTIONS; i++) {
        cr_expect_eq(portions[i].runs.all[0].recalled, i < PORTIONS - 1, "partition %u", i);
        cr_expect_eq(known[i].unproved, i < PORTIONS - 1 ? 1u << PROOF_VER : 0, "partition %u", i);
    }
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * (PORTIONS - 1));
    cr_expect_eq(tally_total(&q.tally, METRIC_SECONDS), 50u * (PORTIONS - 1));
}

Test(recall, after_a_late_event_one_partition_is_read, .init = setup, .fini = teardown)
{
    plan_again();
    for (unsigned i = 0; i < PORTIONS; i++) {
        keep(i, 0);
    }
    known[3].view.ver.text[1] = 'z';
    plan_again();
    for (unsigned i = 0; i < PORTIONS; i++) {
        cr_expect_eq(portions[i].runs.all[0].recalled, i != 3, "partition %u", i);
    }
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * (PORTIONS - 1));
}

Test(recall, open_minutes_of_visits_are_recalled_by_their_fold, .init = setup, .fini = teardown)
{
    for (unsigned i = 0; i < PORTIONS; i++) {
        known[i].view.fold = (struct ver){2, "f1"};
        known[i].view.fold_held = true;
    }
    plan_again();
    cr_assert_eq(portions[0].runs.n, 2u);
    keep(0, 1);
    plan_again();
    cr_expect(portions[0].runs.all[1].recalled);
    cr_expect_eq(known[0].unproved, 1u << PROOF_FOLD);
    known[0].changed = 1u << PROOF_FOLD;
    keep(0, 1);
    known[0].changed = 0;
    known[0].view.fold.text[1] = '2';
    plan_again();
    cr_expect_not(portions[0].runs.all[1].recalled);
}

/* Portions with one plan have the same runs only where the same minutes are over. */
Test(recall, runs_follow_what_is_over_in_their_partition, .init = setup, .fini = teardown)
{
    known[1].view.over_s = NOON_S + 60;
    known[2].view.over_s = NOON_S + 120;
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].metrics = 1u << METRIC_PV;
    }
    plan_again();
    cr_assert(portions[0].runs.n == 1 && portions[1].runs.n == 2 && portions[2].runs.n == 2);
    cr_expect_eq(portions[1].runs.all[1].n, 1u);
    cr_expect_eq(portions[2].runs.all[1].n, 2u);
}

/* Minutes that are open are remembered of visits alone. */
Test(recall, a_portion_of_pages_has_no_run_of_open_minutes, .init = setup, .fini = teardown)
{
    portions[PORTIONS - 1].metrics = 1u << METRIC_PV;
    for (unsigned i = 0; i < PORTIONS; i++) {
        known[i].view.fold = (struct ver){2, "f1"};
    }
    plan_again();
    cr_expect_eq(portions[0].runs.n, 2u);
    cr_expect_eq(portions[PORTIONS - 1].runs.n, 1u);
}

/* Its id has changed while it was read: it must not be in a sum of all partitions either. */
Test(recall, what_is_not_kept_is_no_part_of_a_whole, .init = setup, .fini = teardown)
{
    plan_again();
    cr_assert_eq(q.n_wholes, 1u);
    known[0].changed = 1u << PROOF_VER;
    keep(0, 0);
    cr_expect_eq(q.wholes[0].kept, 0u);
    known[0].changed = 0;
    keep(0, 0);
    cr_expect_eq(q.wholes[0].kept, 1u);
}

/* Sums of pages are values of their own. */
Test(recall, a_sum_is_not_recalled_without_the_others, .init = setup, .fini = teardown)
{
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].metrics = 1u << METRIC_PV | 1u << METRIC_OTHER_PV;
    }
    for (unsigned attempt = 0; attempt < 3; attempt++) {
        plan_again();
        cr_expect_eq(portions[0].runs.all[0].recalled, attempt == 2);
        cr_expect_eq(tally_total(&q.tally, METRIC_PV), attempt == 2 ? 3u : 0u);
        q.run_sum[METRIC_PV] = q.run_sum[METRIC_OTHER_PV] = 3;
        enum metric metric = attempt == 0 ? METRIC_PV : METRIC_OTHER_PV;
        cr_assert(count_keep_run(&q, metric, &portions[0], &portions[0].runs.all[0], 0));
    }
}
