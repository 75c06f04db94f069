/* Which points of a series are remembered. */
#include "storage/count/series.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/time/units.h"

TestSuite(series, .timeout = 60);

#define NOON_S   (20000 * 24 * HOUR_S + 12 * HOUR_S)
#define PORTIONS 2
#define POINTS   2

static struct core core;
static struct proved_partition known[PORTIONS];
static struct portion portions[PORTIONS];
/* The last two minutes of an hour, a point each. */
static struct bucket minutes[] = {
    {LEVEL_MINUTE, NOON_S - 120, NOON_S - 60}, {LEVEL_MINUTE, NOON_S - 60, NOON_S}};
static size_t ends[] = {1, 2};
static bool is_known[POINTS];
static const struct slice *whole_site[] = {&count_whole_site};
static struct count_job job = {.asked = {.site = {"s", 1}}, .step = STEP_MINUTE};
static struct count_question q;

static void setup(void)
{
    core.cache = cache_new(1 << 16);
    core.partitions.n = PORTIONS;
    q = (struct count_question){.read = {.core = &core, .zone = zone_utc(), .known = known},
        .job = &job,
        .portions = portions,
        .n_portions = PORTIONS,
        .known = is_known};
    buffer_init(&q.scratch);
    cr_assert(tally_cut(&q.tally, zone_utc(), STEP_MINUTE, (struct window){NOON_S - 120, NOON_S}));
    tally_clear(&q.tally);
    for (unsigned i = 0; i < PORTIONS; i++) {
        known[i] = (struct proved_partition){.view = {.known = true,
                                                 .state = rollup_state_initial(NOON_S),
                                                 .ver = {2, {'v', (char)('a' + i)}}}};
        portions[i] = (struct portion){.partition = i,
            .metrics = 1u << METRIC_PV,
            .pages = whole_site,
            .n_pages = 1,
            .cover = {.buckets = minutes, .n = POINTS},
            .ends = ends};
    }
}

static void teardown(void)
{
    for (unsigned i = 0; i < PORTIONS; i++) {
        runs_release(&portions[i].runs);
    }
    runs_release(&q.found.runs);
    free(q.rest);
    free(q.wholes);
    kept_parts_release(&q.parts);
    buffer_release(&q.scratch);
    tally_release(&q.tally);
    cache_free(core.cache);
}

/* The points were read: 3 views in each.  How many of them are known to the next question? */
static size_t remembered(void)
{
    size_t n = 0;
    for (size_t i = 0; i < POINTS; i++) {
        tally_sum(&q.tally, METRIC_PV, i, 3);
    }
    series_remember(&q);
    tally_clear(&q.tally);
    cr_assert(series_recall(&q));
    for (size_t i = 0; i < POINTS; i++) {
        n += is_known[i];
    }
    cr_expect_eq(tally_total(&q.tally, METRIC_PV), 3 * n);
    return n;
}

Test(series, points_that_are_over_are_remembered, .init = setup, .fini = teardown)
{
    cr_expect_eq(remembered(), 2u);
}

/* The leader has closed the hour in the first partition, and not yet in the last one: there late
 * events leave the id as it is. */
Test(series, points_that_are_not_over_in_all_partitions, .init = setup, .fini = teardown)
{
    known[PORTIONS - 1].view.state = rollup_state_initial(NOON_S - HOUR_S);
    cr_expect_eq(remembered(), 0u);
}

Test(series, points_that_are_not_over_anywhere, .init = setup, .fini = teardown)
{
    for (unsigned i = 0; i < PORTIONS; i++) {
        known[i].view.state = rollup_state_initial(NOON_S - HOUR_S);
    }
    cr_expect_eq(remembered(), 0u);
}

/* Its partition's id was not the same in all replies. */
Test(series, points_that_changed_while_they_were_read, .init = setup, .fini = teardown)
{
    known[0].changed = 1u << PROOF_VER;
    cr_expect_eq(remembered(), 0u);
}
