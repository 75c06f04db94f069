#include "storage/fold/cut.h"

#include <criterion/criterion.h>

#include "tests/lib/fold_fixture.h"

/* Of a cluster: each transaction has one partition, and only those that were asked for. */
TestSuite(cut, .timeout = 20);

#define PARTITIONS 8

Test(cut, one_partition_a_transaction)
{
    struct core *core = fold_core_make(PARTITIONS);
    static struct batch batch;
    struct cut_left left = {0};
    struct cutter cutter;
    struct cut cuts[CUTS_MAX];
    bool last = false;
    unsigned n = 0;
    cr_assert_not_null(batch_add_log(&batch, "00000000000000aa", 0));
    cr_assert(batch_add(&batch, fold_entry("00000000000000aa", 1, FOLD_NOW_S, 200)));
    cr_assert(batch_finish(&batch, core));
    left.has[1] = left.has[4] = left.has[7] = true;
    core->is_spread = true;
    cutter_begin(&cutter, core, &batch, &left, 2);
    unsigned expected[] = {4, 7, 1}; /* from 2 on and around */
    while (!last) {
        cr_assert_eq(cutter_next(&cutter, &fold_no_pace, UINT32_MAX, cuts, &last), 1u);
        cr_assert_lt(n, 3u);
        cr_expect_eq(cuts[0].partition, expected[n++]);
        cr_expect_eq(cuts[0].to, batch.tasks[cuts[0].partition].n);
    }
    cr_expect_eq(n, 3u);
    cr_expect_eq(cutter_next(&cutter, &fold_no_pace, UINT32_MAX, cuts, &last), 0u);
    batch_release(&batch);
    fold_core_drop(core);
}

Test(cut, with_one_server_partitions_share_a_transaction)
{
    struct core *core = fold_core_make(PARTITIONS);
    static struct batch batch;
    struct cut_left left = {0};
    struct cutter cutter;
    struct cut cuts[CUTS_MAX];
    bool last = false;
    cr_assert_not_null(batch_add_log(&batch, "00000000000000aa", 0));
    cr_assert(batch_add(&batch, fold_entry("00000000000000aa", 1, FOLD_NOW_S, 20)));
    cr_assert(batch_finish(&batch, core));
    cut_all_left(&left, core);
    cutter_begin(&cutter, core, &batch, &left, 0);
    cr_expect_eq(
        cutter_next(&cutter, &fold_no_pace, UINT32_MAX, cuts, &last), (unsigned)PARTITIONS);
    cr_expect(last);
    batch_release(&batch);
    fold_core_drop(core);
}

/* How many transactions @batch takes by @pace; all their work is in @ret. */
static unsigned cut_work(struct core *core, const struct batch *batch, const struct pace *pace,
    uint32_t limit_us, struct work *ret)
{
    struct cut_left left = {0};
    struct cutter cutter;
    struct cut cuts[CUTS_MAX];
    bool last = false;
    unsigned transactions = 0;
    *ret = (struct work){.newest_s = 0};
    cut_all_left(&left, core);
    cutter_begin(&cutter, core, batch, &left, 0);
    while (!last) {
        unsigned n = cutter_next(&cutter, pace, limit_us, cuts, &last);
        transactions++;
        for (unsigned i = 0; i < n; i++) {
            double us = 0;
            for (unsigned k = 0; k < WORK_KINDS; k++) {
                us +=
                    cuts[i].work.tenths[k] / 1000.0 * pace_percent(pace, k, cuts[i].work.newest_s);
            }
            cr_expect_float_eq(cuts[i].us, us, 1.01);
            work_add(ret, &cuts[i].work);
        }
    }
    return transactions;
}

/* The pace sees by it to which minute the sketches belong. */
Test(cut, the_newest_event_is_not_always_the_last)
{
    struct core *core = fold_core_make(1);
    const struct event newest = {.at_s = FOLD_NOW_S,
        .site = SLICE("shop"),
        .page = SLICE("/"),
        .address = {.len = 4, .bytes = {10, 0, 0, 1}}};
    for (unsigned at = 0; at < 3; at++) {
        struct event events[3] = {newest, newest, newest};
        struct batch batch = {0};
        struct work work;
        for (unsigned i = 0; i < 3; i++) {
            events[i].at_s -= i == at ? 0 : 180;
        }
        cr_assert_not_null(batch_add_log(&batch, "00000000000000aa", 0));
        cr_assert(batch_add(&batch, fold_entry_of("00000000000000aa", 1, FOLD_NOW_S, events, 3)));
        cr_assert(batch_finish(&batch, core));
        cr_expect_eq(cut_work(core, &batch, &fold_no_pace, UINT32_MAX, &work), 1u);
        cr_expect_eq(work.newest_s, FOLD_NOW_S, "%u", at);
        batch_release(&batch);
    }
    fold_core_drop(core);
}

/* A page's stripe and a visitor's: behind each there is a place to cut. */
Test(cut, the_stripes_of_one_event_may_be_of_two_transactions)
{
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    struct work work;
    cr_assert_not_null(batch_add_log(&batch, "00000000000000aa", 0));
    cr_assert(batch_add(&batch, fold_entry("00000000000000aa", 1, FOLD_NOW_S, 1)));
    cr_assert(batch_finish(&batch, core));
    cr_expect_geq(cut_work(core, &batch, &fold_no_pace, 1, &work), 2u);
    batch_release(&batch);
    fold_core_drop(core);
}

/* A transaction's work is that of its own tasks, without those behind the place of the cut: the
 * pace learns from it. */
Test(cut, the_work_of_all_cuts_is_that_of_the_batch)
{
    struct core *core = fold_core_make(PARTITIONS);
    static struct batch batch;
    struct work whole, cut;
    cr_assert_not_null(batch_add_log(&batch, "00000000000000aa", 0));
    cr_assert(batch_add(&batch, fold_entry("00000000000000aa", 1, FOLD_NOW_S, 2000)));
    cr_assert(batch_finish(&batch, core));
    cr_expect_eq(cut_work(core, &batch, &fold_no_pace, UINT32_MAX, &whole), 1u);
    cr_expect_gt(cut_work(core, &batch, &fold_no_pace, 100, &cut), 10u);
    for (unsigned k = 0; k < WORK_STATE; k++) {
        cr_expect_eq(cut.tenths[k], whole.tenths[k]);
    }
    cr_expect_gt(whole.tenths[TASK_PAGE], 0u);
    cr_expect_gt(whole.tenths[TASK_VISIT], 0u);
    cr_expect_gt(cut.tenths[WORK_STATE], whole.tenths[WORK_STATE], "some are met several times");
    cr_expect_eq(cut.newest_s, FOLD_NOW_S);
    cr_expect_eq(whole.newest_s, FOLD_NOW_S);
    batch_release(&batch);
    fold_core_drop(core);
}

Test(cut, an_expensive_kind_makes_short_transactions)
{
    struct core *core = fold_core_make(PARTITIONS);
    static struct batch batch;
    struct pace slow = {.end_s = INT64_MAX}, fast = slow;
    struct work work;
    cr_assert_not_null(batch_add_log(&batch, "00000000000000aa", 0));
    cr_assert(batch_add(&batch, fold_entry("00000000000000aa", 1, FOLD_NOW_S, 2000)));
    cr_assert(batch_finish(&batch, core));
    slow.kinds[TASK_PAGE].percent = 400;
    fast.kinds[TASK_PAGE].percent = 40;
    unsigned plain = cut_work(core, &batch, &fold_no_pace, 300, &work);
    cr_expect_gt(cut_work(core, &batch, &slow, 300, &work), 2 * plain);
    cr_expect_lt(cut_work(core, &batch, &fast, 300, &work), plain);
    batch_release(&batch);
    fold_core_drop(core);
}
