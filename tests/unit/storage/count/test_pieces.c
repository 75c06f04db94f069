/* Which partitions are asked of which nothing is read. */
#include "storage/count/pieces.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(count_pieces, .timeout = 60);

#define NOON_S (INT64_C(20000) * 86400 + 43200)

static struct proved_partition known[1];
static size_t ends[] = {0};
static const struct slice *whole_site[] = {&count_whole_site};
static struct portion portion = {
    .metrics = 1u << METRIC_VISITS, .pages = whole_site, .n_pages = 1, .ends = ends};
static struct count_question q;

static void setup(void)
{
    known[0] = (struct proved_partition){.held = 0};
    q = (struct count_question){.read = {.known = known}, .portions = &portion, .n_portions = 1};
    cr_assert(tally_cut(&q.tally, zone_utc(), STEP_NONE, (struct window){NOON_S, NOON_S + 3600}));
}

static void teardown(void)
{
    free(q.pieces);
    tally_release(&q.tally);
}

Test(count_pieces, what_holds_by_a_print_needs_no_word, .init = setup, .fini = teardown)
{
    known[0].held = 1u << PROOF_VER;
    cr_assert(pieces_cut(&q));
    cr_expect_eq(q.n_pieces, 0u);
}

Test(count_pieces, what_is_recalled_wants_proof, .init = setup, .fini = teardown)
{
    known[0].held = 1u << PROOF_OVER;
    known[0].unproved = 1u << PROOF_VER;
    cr_assert(pieces_cut(&q));
    cr_assert_eq(q.n_pieces, 1u);
    cr_expect_eq(q.pieces[0].reads, 0u);
}

/* That there is nothing to read was planned by a state that may be old. */
Test(count_pieces, so_does_that_there_is_nothing, .init = setup, .fini = teardown)
{
    cr_assert(pieces_cut(&q));
    cr_expect_eq(q.n_pieces, 1u);
}
