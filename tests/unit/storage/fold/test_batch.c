#include "storage/fold/batch.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "storage/fold/cut.h"
#include "tests/lib/dice.h"
#include "tests/lib/fold_fixture.h"

/* Batches of entries, and how they are cut into transactions. */
TestSuite(batch, .timeout = 60);

#define NOW_S FOLD_NOW_S
#define A     "00000000000000aa"
#define B     "00000000000000bb"
#define C     "00000000000000cc"

static void add(struct batch *batch, const char *id, uint64_t n, int64_t arrival_s, size_t events)
{
    cr_assert(batch_add(batch, fold_entry(id, n, arrival_s, events)));
}

Test(batch, orders_by_arrival_and_within_a_log_by_number)
{
    struct core *core = fold_core_make(4);
    struct batch batch = {0};
    cr_assert_not_null(batch_add_log(&batch, A, 3));
    add(&batch, A, 4, NOW_S + 10, 2);
    add(&batch, A, 5, NOW_S, 1); /* the clock was set back */
    cr_assert_not_null(batch_add_log(&batch, B, 0));
    add(&batch, B, 1, NOW_S + 5, 3);
    add(&batch, B, 2, NOW_S + 20, 0);
    cr_assert(batch_finish(&batch, core));
    cr_assert_eq(batch.n_entries, 4u);
    cr_assert_eq(batch.n_rows, 6u);
    static const uint64_t numbers[] = {1, 4, 5, 2};
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(batch.entries[i].entry->n, numbers[i]);
    }
    cr_expect_eq(batch.logs[0].from, 3u);
    cr_expect_eq(batch.logs[0].to, 5u);
    cr_expect_eq(batch.logs[1].to, 2u);
    batch_release(&batch);
    fold_core_drop(core);
}

Test(batch, positions_follow_the_rows)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    cr_assert_not_null(batch_add_log(&batch, A, 0));
    add(&batch, A, 1, NOW_S, 2);
    add(&batch, A, 2, NOW_S + 1, 0);
    add(&batch, A, 3, NOW_S + 2, 3);
    cr_assert_not_null(batch_add_log(&batch, B, 6));
    add(&batch, B, 7, NOW_S + 1, 2);
    cr_assert(batch_finish(&batch, core)); /* rows: A1 A1, B7 B7, A3 A3 A3 */
    static const struct {
        uint32_t row;
        struct log_position a, b;
    } cases[] = {{0, {0, 0}, {6, 0}}, {1, {0, 1}, {6, 0}}, {2, {2, 0}, {6, 0}}, {3, {2, 0}, {6, 1}},
        {4, {2, 0}, {7, 0}}, {6, {2, 2}, {7, 0}}, {7, {3, 0}, {7, 0}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct log_position a = batch_position(&batch, 0, cases[i].row);
        struct log_position b = batch_position(&batch, 1, cases[i].row);
        cr_expect(a.whole == cases[i].a.whole && a.events == cases[i].a.events, "row %u: %" PRIu64,
            cases[i].row, a.whole);
        cr_expect(b.whole == cases[i].b.whole && b.events == cases[i].b.events, "row %u: %" PRIu64,
            cases[i].row, b.whole);
    }
    batch_release(&batch);
    fold_core_drop(core);
}

/* What arrived behind the end of a log that goes on is left for the next batch. */
Test(batch, leaves_what_is_later_than_a_log_that_goes_on)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct batch_log *a = batch_add_log(&batch, A, 0);
    add(&batch, A, 1, NOW_S, 1);
    add(&batch, A, 2, NOW_S + 5, 1);
    a->more = true;
    cr_assert_not_null(batch_add_log(&batch, B, 0));
    add(&batch, B, 1, NOW_S + 5, 1);
    add(&batch, B, 2, NOW_S + 6, 1);
    add(&batch, B, 3, NOW_S + 7, 1);
    cr_assert(batch_finish(&batch, core));
    cr_expect_eq(batch.n_rows, 3u);
    cr_expect_eq(batch.logs[0].to, 2u);
    cr_expect_eq(batch.logs[1].to, 1u);
    cr_expect(batch.logs[1].more);
    batch_release(&batch);
    fold_core_drop(core);
}

/* What comes in a later batch is missing there, if it is. */
Test(batch, tells_which_entries_are_missing)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct log_entry *broken = fold_entry(A, 6, NOW_S, 5);
    broken->packed.n -= 3;
    cr_assert_not_null(batch_add_log(&batch, A, 1));
    add(&batch, A, 2, NOW_S, 1);
    add(&batch, A, 4, NOW_S, 1);
    cr_assert(batch_add(&batch, broken));
    add(&batch, A, 9, NOW_S, 1);
    batch.logs[0].to = 9;
    cr_expect_eq(batch_missing(&batch, 0), 4u, "3, 5, 7 and 8");
    struct batch_log *b = batch_add_log(&batch, B, 0);
    add(&batch, B, 3, NOW_S + 1, 1);
    b->more = true;
    cr_assert_not_null(batch_add_log(&batch, C, 0));
    add(&batch, C, 2, NOW_S + 1, 1);
    add(&batch, C, 9, NOW_S + 2, 1);
    batch.logs[2].to = 10;
    cr_assert(batch_finish(&batch, core));
    cr_expect_eq(batch_missing(&batch, 0), 2u, "3 and 5: the log stops before 6");
    cr_expect_eq(batch_missing(&batch, 1), 2u);
    cr_expect_eq(batch.logs[2].to, 8u);
    cr_expect_eq(batch_missing(&batch, 2), 7u, "and 10 is found, or not, behind 9");
    batch.logs[2].from = 5;
    cr_expect_eq(batch_missing(&batch, 2), 3u, "6, 7 and 8");
    batch_release(&batch);
    fold_core_drop(core);
}

Test(batch, stops_a_log_at_an_entry_that_cannot_be_read)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct log_entry *broken = fold_entry(A, 2, NOW_S, 5);
    broken->packed.n -= 3;
    cr_assert_not_null(batch_add_log(&batch, A, 0));
    add(&batch, A, 1, NOW_S, 2);
    cr_assert(batch_add(&batch, broken));
    add(&batch, A, 3, NOW_S, 2);
    cr_assert_not_null(batch_add_log(&batch, B, 0));
    add(&batch, B, 1, NOW_S + 1, 4);
    cr_assert(batch_finish(&batch, core));
    cr_expect(batch.logs[0].broken && !batch.logs[1].broken);
    cr_expect_eq(batch.logs[0].to, 1u);
    cr_expect_eq(batch.n_rows, 6u);
    cr_expect_eq(batch.tasks[0].n, 18u);
    cr_expect_eq(batch_position(&batch, 0, (uint32_t)batch.n_rows).whole, 1u);
    cr_expect_eq(batch_position(&batch, 0, 3).whole, 1u);
    batch_release(&batch);
    fold_core_drop(core);
}

/* As where the stream has an item that is none of ours. */
Test(batch, counts_what_stands_before_an_item_that_is_none_of_ours)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct batch_log *a = batch_add_log(&batch, A, 0);
    add(&batch, A, 1, NOW_S, 2);
    add(&batch, A, 2, NOW_S, 3);
    a->more = a->broken = true;
    cr_assert(batch_finish(&batch, core));
    cr_expect_eq(batch.n_rows, 5u);
    cr_expect_eq(batch.logs[0].to, 2u);
    cr_expect(batch.logs[0].broken);
    batch_release(&batch);
    fold_core_drop(core);
}

/* A log that is left to the next batch does not end where it is left. */
Test(batch, does_not_stop_a_log_before_the_entry_that_cannot_be_read)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct batch_log *a = batch_add_log(&batch, A, 0);
    add(&batch, A, 1, NOW_S, 1);
    a->more = true;
    struct batch_log *b = batch_add_log(&batch, B, 0);
    add(&batch, B, 1, NOW_S + 1, 1);
    b->more = b->broken = true;
    cr_assert(batch_finish(&batch, core));
    cr_expect_eq(batch.n_rows, 1u);
    cr_expect_eq(batch.logs[1].to, 0u);
    cr_expect(batch.logs[1].more && !batch.logs[1].broken);
    batch_release(&batch);
    fold_core_drop(core);
}

/* Nothing comes before it, and nothing after it: others are counted all the same. */
Test(batch, does_not_wait_for_a_first_entry_that_cannot_be_read)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct batch_log *a = batch_add_log(&batch, A, 0);
    a->more = a->broken = true;
    (void)batch_add_log(&batch, B, 0);
    add(&batch, B, 1, NOW_S, 2);
    cr_assert(batch_finish(&batch, core));
    cr_expect_eq(batch.n_rows, 2u);
    cr_expect(batch.logs[0].broken && batch.logs[1].to == 1);
    batch_release(&batch);
    fold_core_drop(core);
}

/* ---- cuts ---- */

/* How far the cuts so far have come in each partition. */
struct progress {
    uint32_t task[PARTITIONS_MAX];
    uint8_t stripe[PARTITIONS_MAX];
};

/* What the cut says is counted afterwards is its tasks and those before, and no other. */
static void check_cut(const struct batch *batch, const struct cut *cut, struct progress *done)
{
    const struct batch_tasks *tasks = &batch->tasks[cut->partition];
    uint32_t n = (uint32_t)tasks->n;
    cr_assert_eq(cut->from, done->task[cut->partition]);
    cr_assert_eq(cut->first_stripe, done->stripe[cut->partition]);
    cr_assert(cut->to <= n && (cut->to > cut->from || n == 0 || cut->to == n));
    cr_assert(cut->end_stripe < LOG_STRIPES || (cut->to == n && cut->to_row == 0));
    for (uint32_t i = cut->from; i < n; i++) {
        unsigned stripe = task_stripe(batch->rows, tasks->tasks[i]);
        bool counts = stripe < cut->end_stripe ||
                      (stripe == cut->end_stripe && task_row_number(tasks->tasks[i]) < cut->to_row);
        cr_assert_geq(stripe, cut->first_stripe);
        cr_assert_eq(counts, i < cut->to);
    }
    done->task[cut->partition] = cut->to;
    done->stripe[cut->partition] = cut->end_stripe;
}

static void cut_all(struct core *core, const struct batch *batch, uint32_t limit_us)
{
    struct cut_left left = {0};
    struct cutter cutter;
    struct cut cuts[CUTS_MAX];
    static struct progress done;
    unsigned complete = 0;
    bool last = false;
    memset(&done, 0, sizeof(done));
    cut_all_left(&left, core);
    cutter_begin(&cutter, core, batch, &left, 0);
    while (!last) {
        unsigned n = cutter_next(&cutter, &fold_no_pace, limit_us, cuts, &last);
        size_t us = 0;
        cr_assert_gt(n, 0u);
        for (unsigned i = 0; i < n; i++) {
            cr_assert(i == 0 || cuts[i].partition > cuts[i - 1].partition);
            check_cut(batch, &cuts[i], &done);
            complete += cuts[i].end_stripe == LOG_STRIPES;
            us += cuts[i].us;
        }
        cr_assert(n == 1 || us <= limit_us);
    }
    cr_expect_eq(cutter_next(&cutter, &fold_no_pace, limit_us, cuts, &last), 0u);
    cr_expect_eq(complete, core->partitions.n);
    for (unsigned p = 0; p < core->partitions.n; p++) {
        cr_expect_eq(done.task[p], batch->tasks[p].n);
    }
}

Test(batch, cuts_hold_every_task_once)
{
    static const unsigned partitions[] = {1, 4, 64, PARTITIONS_MAX};
    struct dice dice = dice_make(dice_seed());
    for (size_t i = 0; i < 12; i++) {
        struct core *core = fold_core_make(partitions[i % 4]);
        struct batch batch = {0};
        cr_assert_not_null(batch_add_log(&batch, A, 0));
        for (uint64_t n = 1; n <= 1 + i * 3; n++) {
            add(&batch, A, n, NOW_S + (int64_t)n,
                (size_t)dice_below(&dice, dice_chance(&dice, 100) ? 900 : 20));
        }
        cr_assert(batch_finish(&batch, core));
        cut_all(core, &batch, 20);
        cut_all(core, &batch, 300);
        cut_all(core, &batch, UINT32_MAX / 100);
        batch_release(&batch);
        fold_core_drop(core);
    }
}

/* Old events have their page and their site in one stripe.  The position of a stripe is a row, so a
 * cut between the two would have the page counted twice. */
Test(batch, no_cut_divides_what_an_event_has_in_a_stripe)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct event events[20];
    for (uint8_t i = 0; i < 20; i++) {
        events[i] = (struct event){.at_s = NOW_S - 3 * 86400,
            .site = SLICE("shop"),
            .page = SLICE("/"),
            .address = {.len = 4, .bytes = {10, 0, 0, i}}};
    }
    cr_assert_not_null(batch_add_log(&batch, A, 0));
    cr_assert(batch_add(&batch, fold_entry_of(A, 1, NOW_S, events, 20)));
    cr_assert(batch_finish(&batch, core));
    for (uint32_t limit_us = 1; limit_us < 20; limit_us++) {
        cut_all(core, &batch, limit_us);
    }
    batch_release(&batch);
    fold_core_drop(core);
}

/* A busy site's partition has several transactions: it is begun first. */
Test(batch, the_partition_with_far_more_to_do_is_begun_first)
{
    static struct batch batch; /* of numbers alone */
    for (unsigned p = 0; p < 8; p++) {
        batch.tasks[p].n = 100 + p;
    }
    cr_expect_eq(cut_first(&batch, 8), 0u, "they are about alike");
    batch.tasks[5].n = 400;
    cr_expect_eq(cut_first(&batch, 8), 5u);
    cr_expect_eq(cut_first(&batch, 1), 0u);
    memset(&batch, 0, sizeof(batch));
    cr_expect_eq(cut_first(&batch, 8), 0u, "none has anything");
}

/* Those that share the partitions have each task once between them, whatever their turns. */
Test(batch, sharing_cutters_hold_every_task_once)
{
    struct dice dice = dice_make(dice_seed());
    for (unsigned i = 0; i < 20; i++) {
        struct core *core = fold_core_make(1 + i % 17);
        struct batch batch = {0};
        struct cutter cutters[3];
        struct cut cuts[CUTS_MAX];
        static struct progress done;
        bool last[3] = {false};
        unsigned complete = 0;
        struct cut_left left = {0};
        memset(&done, 0, sizeof(done));
        cr_assert_not_null(batch_add_log(&batch, A, 0));
        add(&batch, A, 1, NOW_S, 200);
        cr_assert(batch_finish(&batch, core));
        cut_all_left(&left, core);
        for (unsigned c = 0; c < 3; c++) {
            cutter_begin(&cutters[c], core, &batch, &left, c * core->partitions.n / 3);
        }
        while (!last[0] || !last[1] || !last[2]) {
            unsigned who = (unsigned)dice_below(&dice, 3);
            unsigned n = cutter_next(&cutters[who], &fold_no_pace, 100, cuts, &last[who]);
            for (unsigned k = 0; k < n; k++) {
                check_cut(&batch, &cuts[k], &done);
                complete += cuts[k].end_stripe == LOG_STRIPES;
            }
        }
        cr_expect_eq(complete, core->partitions.n);
        for (unsigned p = 0; p < core->partitions.n; p++) {
            cr_expect_eq(done.task[p], batch.tasks[p].n);
        }
        batch_release(&batch);
        fold_core_drop(core);
    }
}

/* A small fold is one transaction over all partitions, also where some get nothing. */
Test(batch, a_small_fold_is_one_transaction)
{
    struct core *core = fold_core_make(64);
    struct batch batch = {0};
    struct cut_left left = {0};
    struct cutter cutter;
    struct cut cuts[CUTS_MAX];
    bool last = false;
    cr_assert_not_null(batch_add_log(&batch, A, 0));
    add(&batch, A, 1, NOW_S, 3);
    cr_assert(batch_finish(&batch, core));
    cut_all_left(&left, core);
    cutter_begin(&cutter, core, &batch, &left, 0);
    cr_expect_eq(cutter_next(&cutter, &fold_no_pace, 2000, cuts, &last), 64u);
    cr_expect(last);
    batch_release(&batch);
    fold_core_drop(core);
}

Test(batch, a_transaction_has_a_bounded_number_of_partitions)
{
    struct core *core = fold_core_make(2 * CUTS_MAX + 1);
    struct batch batch = {0};
    struct cut_left left = {0};
    struct cutter cutter;
    struct cut cuts[CUTS_MAX];
    bool last = false;
    cr_assert_not_null(batch_add_log(&batch, A, 0));
    add(&batch, A, 1, NOW_S, 3);
    cr_assert(batch_finish(&batch, core));
    cut_all_left(&left, core);
    cutter_begin(&cutter, core, &batch, &left, 0);
    cr_expect_eq(cutter_next(&cutter, &fold_no_pace, 100000, cuts, &last), CUTS_MAX);
    cr_expect(!last);
    cr_expect_eq(cutter_next(&cutter, &fold_no_pace, 100000, cuts, &last), CUTS_MAX);
    cr_expect(!last);
    cr_expect_eq(cutter_next(&cutter, &fold_no_pace, 100000, cuts, &last), 1u);
    cr_expect(last);
    batch_release(&batch);
    fold_core_drop(core);
}
