/* Sums of all partitions together: which portions they stand for, and when they are remembered. */
#include "storage/count/whole.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "storage/time/units.h"

TestSuite(whole, .timeout = 60);

#define NOON_S   (20000 * 24 * HOUR_S + 12 * HOUR_S)
#define PORTIONS 8
#define VISITS   (1u << METRIC_VISITS | 1u << METRIC_SECONDS)

static struct core core;
static struct proved_partition known[PORTIONS];
static struct portion portions[PORTIONS];
static struct bucket hours[] = {
    {LEVEL_HOUR, NOON_S - 2 * HOUR_S, NOON_S - HOUR_S}, {LEVEL_HOUR, NOON_S - HOUR_S, NOON_S}};
static const struct slice *whole_site[] = {&count_whole_site};
static struct count_job job = {.asked = {.site = {"s", 1}}};
static struct count_question q;

/* An attempt: a portion in each partition, all planned alike, with one run of two hours. */
static void plan(void)
{
    q.n_wholes = q.n_whole_sums = 0;
    tally_clear(&q.tally);
    for (unsigned i = 0; i < PORTIONS; i++) {
        struct remembered_runs *runs = &portions[i].runs;
        known[i] = (struct proved_partition){.view = {.known = true,
                                                 .state = rollup_state_initial(NOON_S),
                                                 .ver = {2, {'v', (char)('a' + i)}},
                                                 .over = {2, "o1"}}};
        runs->n = 0;
        portions[i] = (struct portion){.partition = i,
            .metrics = VISITS,
            .pages = whole_site,
            .n_pages = 1,
            .cover = {.buckets = hours, .n = 2},
            .runs = *runs};
        cr_assert_not_null(
            runs_add(&portions[i].runs, (struct remembered_run){.n = 2, .proof = PROOF_VER}));
    }
}

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
    cr_assert(
        tally_cut(&q.tally, zone_utc(), STEP_NONE, (struct window){NOON_S - 2 * HOUR_S, NOON_S}));
    plan();
}

static void teardown(void)
{
    for (unsigned i = 0; i < PORTIONS; i++) {
        runs_release(&portions[i].runs);
    }
    free(q.wholes);
    free(q.whole_sums);
    buffer_release(&q.parts);
    buffer_release(&q.scratch);
    tally_release(&q.tally);
    cache_free(core.cache);
}

static enum whole_found recall(void)
{
    return whole_recall(&q, 0, PORTIONS, 0, 0);
}

/* Portions [0, n) have read 3 visits and 50 seconds each. */
static void read_some(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        whole_add(&q, &portions[i], &portions[i].runs.all[0], METRIC_VISITS, 3);
        whole_add(&q, &portions[i], &portions[i].runs.all[0], METRIC_SECONDS, 50);
    }
}

static void read_all_and_remember(void)
{
    cr_assert_eq(recall(), WHOLE_UNKNOWN);
    read_some(PORTIONS);
    whole_remember(&q);
    plan();
}

Test(whole, what_all_portions_came_to_is_recalled, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    cr_assert_eq(recall(), WHOLE_RECALLED);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * PORTIONS);
    cr_expect_eq(tally_total(&q.tally, METRIC_SECONDS), 50u * PORTIONS);
    for (unsigned i = 0; i < PORTIONS; i++) {
        cr_expect(portions[i].runs.all[0].recalled);
        cr_expect_eq(known[i].unproved, 1u << PROOF_VER, "partition %u has to say its id", i);
    }
}

Test(whole, after_a_late_event_one_partition_is_read, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    known[3].view.ver.text[1] = 'z';
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * (PORTIONS - 1));
    cr_expect_eq(tally_total(&q.tally, METRIC_SECONDS), 50u * (PORTIONS - 1));
    for (unsigned i = 0; i < PORTIONS; i++) {
        cr_expect_eq(portions[i].runs.all[0].recalled, i != 3, "partition %u", i);
        cr_expect_eq(known[i].unproved, i != 3 ? 1u << PROOF_VER : 0, "partition %u", i);
    }
    whole_add(&q, &portions[3], &portions[3].runs.all[0], METRIC_VISITS, 4);
    whole_add(&q, &portions[3], &portions[3].runs.all[0], METRIC_SECONDS, 51);
    whole_remember(&q);
    plan();
    known[3].view.ver.text[1] = 'z';
    cr_expect_eq(recall(), WHOLE_RECALLED);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * PORTIONS + 1);
}

/* Its partition's id was not the same in all replies: the sum is not remembered, the others' parts
 * are. */
Test(
    whole, a_part_that_changed_while_it_was_read_is_not_remembered, .init = setup, .fini = teardown)
{
    cr_assert_eq(recall(), WHOLE_UNKNOWN);
    read_some(PORTIONS);
    known[5].changed = 1u << PROOF_VER;
    whole_remember(&q);
    plan();
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
    cr_expect_not(portions[5].runs.all[0].recalled);
    cr_expect(portions[4].runs.all[0].recalled);
}

/* Other portions may be planned alike in the next minute. */
Test(whole, parts_do_not_depend_on_the_others, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    cr_expect_eq(whole_recall(&q, 0, 3, 0, 0), WHOLE_UNKNOWN);
    cr_expect_eq(whole_recall(&q, 3, PORTIONS - 3, 0, 0), WHOLE_UNKNOWN);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * PORTIONS);
    whole_remember(&q);
    plan();
    cr_expect_eq(whole_recall(&q, 3, PORTIONS - 3, 0, 0), WHOLE_RECALLED);
    cr_expect_eq(whole_recall(&q, 1, 2, 0, 0), WHOLE_UNKNOWN);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * (PORTIONS - 1));
}

/* What two groups of portions have read is remembered beside each other. */
Test(whole, parts_are_remembered_beside_each_other, .init = setup, .fini = teardown)
{
    cr_assert_eq(whole_recall(&q, 0, 3, 0, 0), WHOLE_UNKNOWN);
    read_some(3);
    whole_remember(&q);
    plan();
    cr_assert_eq(whole_recall(&q, 3, PORTIONS - 3, 0, 0), WHOLE_UNKNOWN);
    read_some(PORTIONS);
    whole_remember(&q);
    plan();
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 3u * PORTIONS);
}

/* A question about more of the visits must not take a part of them alone. */
Test(whole, a_part_is_recalled_with_all_metrics, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    known[0].view.ver.text[1] = 'z';
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].metrics |= 1u << METRIC_ENGAGED;
    }
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 0u);
    for (unsigned i = 0; i < PORTIONS; i++) {
        cr_expect_not(portions[i].runs.all[0].recalled);
    }
}

Test(whole, a_sum_that_a_portion_lacks_is_not_remembered, .init = setup, .fini = teardown)
{
    cr_assert_eq(recall(), WHOLE_UNKNOWN);
    read_some(PORTIONS - 1);
    whole_remember(&q);
    plan();
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
    cache_free(core.cache);
    core.cache = cache_new(1 << 16);
    plan();
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
    whole_add(&q, &portions[0], &portions[0].runs.all[0], METRIC_VISITS, 3);
    for (unsigned i = 0; i < PORTIONS; i++) { /* all of one metric is not all */
        whole_add(&q, &portions[i], &portions[i].runs.all[0], METRIC_SECONDS, 50);
    }
    whole_remember(&q);
    plan();
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
}

Test(whole, another_proof_may_change_meanwhile, .init = setup, .fini = teardown)
{
    cr_assert_eq(recall(), WHOLE_UNKNOWN);
    read_some(PORTIONS);
    known[5].changed = 1u << PROOF_OVER;
    whole_remember(&q);
    plan();
    cr_expect_eq(recall(), WHOLE_RECALLED);
}

Test(whole, only_portions_with_the_same_runs_are_one, .init = setup, .fini = teardown)
{
    cr_expect_eq(whole_portions(&q, 0), (size_t)PORTIONS);
    known[4].view.over_s = NOON_S;
    cr_expect_eq(whole_portions(&q, 0), 4u, "other minutes are over there");
    plan();
    known[4].view.fold = (struct ver){2, "f1"};
    cr_expect_eq(whole_portions(&q, 0), 4u, "open minutes are in a run there");
    plan();
    portions[4].metrics |= 1u << METRIC_PV;
    cr_expect_eq(whole_portions(&q, 0), 4u, "of a page, which lies in one partition");
    plan();
    known[4].view.known = false;
    cr_expect_eq(whole_portions(&q, 0), 4u, "nothing may be recalled of it");
    plan();
    portions[4].metrics = 1u << METRIC_VISITS;
    cr_expect_eq(whole_portions(&q, 0), 4u, "it is asked for less");
    plan();
    portions[4].cover.buckets = &hours[1];
    cr_expect_eq(whole_portions(&q, 0), 4u, "by another plan");
    plan();
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].metrics = 1u << METRIC_PV;
    }
    cr_expect_eq(whole_portions(&q, 0), 0u, "of pages, which are others in each partition");
}

Test(whole, a_portion_behind_the_last_one_adds_nothing, .init = setup, .fini = teardown)
{
    for (unsigned attempt = 0; attempt < 2; attempt++) {
        cr_assert_eq(
            whole_recall(&q, 0, PORTIONS - 1, 0, 0), attempt == 0 ? WHOLE_UNKNOWN : WHOLE_RECALLED);
        cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), attempt * 3u * (PORTIONS - 1));
        read_some(PORTIONS);
        whole_remember(&q);
        plan();
    }
}

/* Two runs with one proof: the second is recalled by the first one's, and one with another proof is
 * not. */
Test(whole, runs_with_one_proof_share_it, .init = setup, .fini = teardown)
{
    for (unsigned i = 0; i < PORTIONS; i++) {
        cr_assert_not_null(runs_add(
            &portions[i].runs, (struct remembered_run){.first = 1, .n = 1, .proof = PROOF_VER}));
        cr_assert_not_null(runs_add(
            &portions[i].runs, (struct remembered_run){.first = 1, .n = 1, .proof = PROOF_OVER}));
        known[i].view.over_held = true;
    }
    for (size_t run = 0; run < 3; run++) {
        cr_assert_eq(whole_recall(&q, 0, PORTIONS, run, 0), WHOLE_UNKNOWN);
    }
    cr_expect(ver_equal(&q.wholes[0].by, &q.wholes[1].by));
    cr_expect_not(ver_equal(&q.wholes[1].by, &q.wholes[2].by));
}

/* ---- buckets by themselves ---- */

/* The portions' runs are buckets [first, first + n) now. */
static void plan_of(size_t first, size_t n)
{
    plan();
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].runs.all[0].first = first;
        portions[i].runs.all[0].n = n;
    }
}

/* Portions [0, n) have read the two hours, 1 visit in the first and 2 in the second. */
static void read_hours(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct remembered_run *run = &portions[i].runs.all[0];
        whole_add_bucket(&q, &portions[i], run, 0, METRIC_VISITS, 1);
        whole_add_bucket(&q, &portions[i], run, 1, METRIC_VISITS, 2);
        whole_add_bucket(&q, &portions[i], run, 1, METRIC_SECONDS, 50);
    }
}

Test(whole, each_bucket_is_known_for_other_runs, .init = setup, .fini = teardown)
{
    cr_assert_eq(recall(), WHOLE_UNKNOWN);
    read_hours(PORTIONS);
    read_some(PORTIONS);
    whole_remember(&q);
    const unsigned visits[] = {1, 2};
    for (size_t hour = 0; hour < 2; hour++) {
        plan_of(hour, 1);
        cr_assert_eq(recall(), WHOLE_RECALLED);
        cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), visits[hour] * PORTIONS);
        cr_expect_eq(tally_total(&q.tally, METRIC_SECONDS), hour * 50 * PORTIONS);
    }
}

Test(whole, a_run_is_the_sum_of_its_buckets, .init = setup, .fini = teardown)
{
    for (size_t hour = 0; hour < 2; hour++) {
        plan_of(hour, 1);
        cr_expect_eq(recall(), WHOLE_UNKNOWN);
        for (unsigned i = 0; i < PORTIONS; i++) {
            const struct remembered_run *run = &portions[i].runs.all[0];
            whole_add_bucket(&q, &portions[i], run, hour, METRIC_VISITS, 3);
            whole_add_bucket(&q, &portions[i], run, hour, METRIC_SECONDS, 50);
        }
        read_some(PORTIONS);
        whole_remember(&q);
        plan();
        cr_expect_eq(recall(), hour == 0 ? WHOLE_UNKNOWN : WHOLE_RECALLED);
    }
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 6u * PORTIONS);
    cr_expect_eq(tally_total(&q.tally, METRIC_SECONDS), 100u * PORTIONS);
}

Test(whole, a_portion_that_was_recalled_says_nothing_of_buckets, .init = setup, .fini = teardown)
{
    cr_assert_eq(recall(), WHOLE_UNKNOWN);
    read_hours(PORTIONS - 1);
    read_some(PORTIONS);
    whole_remember(&q);
    plan_of(0, 1);
    cr_expect_eq(recall(), WHOLE_UNKNOWN);
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), 0u);
    plan();
    cr_expect_eq(recall(), WHOLE_RECALLED, "the whole run is known");
}
