/* A partition of which nothing is read is asked all the same: for what is recalled of it, and
 * because it was planned by a state that may be old. */
#include "storage/count/pieces.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(count_pieces, .timeout = 60);

#define NOON_S (INT64_C(20000) * 86400 + 43200)

static size_t ends[] = {0};
static const struct slice *whole_site[] = {&count_whole_site};
static struct portion portion = {
    .metrics = 1u << METRIC_VISITS, .pages = whole_site, .n_pages = 1, .ends = ends};
static struct count_question q;

static void setup(void)
{
    q = (struct count_question){.portions = &portion, .n_portions = 1};
    cr_assert(tally_cut(&q.tally, zone_utc(), STEP_NONE, (struct window){NOON_S, NOON_S + 3600}));
}

static void teardown(void)
{
    free(q.pieces);
    tally_release(&q.tally);
}

Test(count_pieces, a_partition_is_asked_at_the_least_for_its_ids, .init = setup, .fini = teardown)
{
    cr_assert(pieces_cut(&q));
    cr_assert_eq(q.n_pieces, 1u);
    cr_expect_eq(q.pieces[0].reads, 0u);
}
