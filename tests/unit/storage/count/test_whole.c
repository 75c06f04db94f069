/* Buckets of visits in all partitions together: which are added up, remembered and recalled. */
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
static size_t ends[] = {2};
static const struct slice *whole_site[] = {&count_whole_site};
static struct count_job job = {.asked = {.site = {"s", 1}}};
static struct count_question q;

/* An attempt: a portion in each partition, all planned alike, with one run, of buckets [first,
 * first + n). */
static void plan_of(size_t first, size_t n)
{
    q.n_wholes = 0;
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
            .ends = ends,
            .runs = *runs};
        cr_assert_not_null(runs_add(&portions[i].runs,
            (struct remembered_run){.first = first, .n = n, .proof = PROOF_VER}));
    }
}

static void plan(void)
{
    plan_of(0, 2);
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
    buffer_release(&q.scratch);
    tally_release(&q.tally);
    cache_free(core.cache);
}

/* Is the run recalled?  In all portions, or in none. */
static bool recall(void)
{
    cr_assert(whole_recall(&q, 0));
    bool recalled = portions[0].runs.all[0].recalled;
    for (unsigned i = 0; i < PORTIONS; i++) {
        cr_expect_eq(portions[i].runs.all[0].recalled, recalled);
        cr_expect_eq(known[i].unproved, recalled ? 1u << PROOF_VER : 0, "partition %u", i);
    }
    return recalled;
}

/* Portions [0, n) have read their run: 1 visit in the first hour and 2 in the second, and there 50
 * seconds. */
static void read_some(unsigned n)
{
    for (unsigned p = 0; p < n; p++) {
        const struct portion *portion = &portions[p];
        const struct remembered_run *run = &portion->runs.all[0];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            whole_add(&q, portion, run, i, METRIC_VISITS, i + 1);
            whole_add(&q, portion, run, i, METRIC_SECONDS, 50 * i);
        }
        whole_keep(&q, run);
    }
}

static void read_all_and_remember(void)
{
    cr_assert_not(recall());
    read_some(PORTIONS);
    whole_remember(&q);
    plan();
}

static void expect_total(unsigned visits, unsigned seconds)
{
    cr_expect_eq(tally_total(&q.tally, METRIC_VISITS), (uint64_t)visits * PORTIONS);
    cr_expect_eq(tally_total(&q.tally, METRIC_SECONDS), (uint64_t)seconds * PORTIONS);
}

Test(whole, what_all_portions_came_to_is_recalled, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    cr_expect(recall());
    expect_total(3, 50);
    cr_expect_eq(q.n_wholes, 0u, "nothing is to be added up");
}

Test(whole, each_bucket_is_known_for_other_runs, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    for (unsigned hour = 0; hour < 2; hour++) {
        plan_of(hour, 1);
        cr_expect(recall());
        expect_total(hour + 1, 50 * hour);
    }
}

Test(whole, a_run_is_the_sum_of_its_buckets, .init = setup, .fini = teardown)
{
    for (unsigned hour = 0; hour < 2; hour++) {
        plan_of(hour, 1);
        cr_expect_not(recall());
        read_some(PORTIONS);
        whole_remember(&q);
        plan();
        cr_expect_eq(recall(), hour == 1);
    }
    expect_total(3, 50);
}

Test(whole, what_a_portion_lacks_is_not_remembered, .init = setup, .fini = teardown)
{
    cr_assert_not(recall());
    read_some(PORTIONS - 1);
    whole_remember(&q);
    plan();
    cr_expect_not(recall());
}

Test(whole, after_a_late_event_nothing_is_recalled, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    known[3].view.ver.text[1] = 'z';
    cr_expect_not(recall());
    expect_total(0, 0);
}

/* Its partition's id was not the same in all replies. */
Test(whole, what_changed_while_it_was_read_is_not_remembered, .init = setup, .fini = teardown)
{
    cr_assert_not(recall());
    read_some(PORTIONS);
    known[5].changed = 1u << PROOF_VER;
    whole_remember(&q);
    plan();
    cr_expect_not(recall());
}

Test(whole, another_proof_may_change_meanwhile, .init = setup, .fini = teardown)
{
    cr_assert_not(recall());
    read_some(PORTIONS);
    known[5].changed = 1u << PROOF_OVER;
    whole_remember(&q);
    plan();
    cr_expect(recall());
}

/* A question about more of the visits must not take a part of them alone. */
Test(whole, all_metrics_are_recalled_or_none, .init = setup, .fini = teardown)
{
    read_all_and_remember();
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].metrics |= 1u << METRIC_ENGAGED;
    }
    cr_expect_not(recall());
    expect_total(0, 0);
}

/* @what: the last portion has another run. */
static void expect_not_of_all(const char *what)
{
    read_some(PORTIONS);
    cr_assert(whole_recall(&q, 0));
    cr_expect_not(portions[0].runs.all[0].recalled, "%s", what);
    cr_expect_eq(q.n_wholes, 0u, "%s", what);
    plan();
}

Test(whole, only_closed_runs_of_all_portions_are_added_up, .init = setup, .fini = teardown)
{
    struct portion *last = &portions[PORTIONS - 1];
    read_all_and_remember();
    last->runs.n = 0;
    expect_not_of_all("nothing may be recalled of it");
    last->runs.all[0].n = 1;
    expect_not_of_all("another end");
    last->cover.buckets = &hours[1];
    expect_not_of_all("another plan");
    last->runs.all[0].proof = PROOF_OVER;
    expect_not_of_all("minutes of an hour that is not closed");
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].runs.all[0].proof = PROOF_OVER;
    }
    expect_not_of_all("not closed anywhere");
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].runs.all[0].n = WHOLE_BUCKETS_MAX + 1;
    }
    expect_not_of_all("too long");
    for (unsigned i = 0; i < PORTIONS; i++) {
        portions[i].metrics = 1u << METRIC_PV;
    }
    expect_not_of_all("of pages, which are others in each partition");
    cr_expect(recall(), "and else it is known");
}

Test(whole, a_portion_of_pages_has_no_part_in_it, .init = setup, .fini = teardown)
{
    cr_assert_not(recall());
    read_some(PORTIONS);
    const struct portion of_pages = {.metrics = 1u << METRIC_PV, .runs = portions[0].runs};
    whole_add(&q, &of_pages, &of_pages.runs.all[0], 0, METRIC_VISITS, 1000);
    whole_remember(&q);
    plan();
    cr_expect(recall());
    expect_total(3, 50);
}
