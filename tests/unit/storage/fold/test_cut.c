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
    cutter_begin(&cutter, core, &batch, &left, 0);
    unsigned expected[] = {1, 4, 7};
    while (!last) {
        cr_assert_eq(cutter_next(&cutter, UINT32_MAX, cuts, &last), 1u);
        cr_assert_lt(n, 3u);
        cr_expect_eq(cuts[0].partition, expected[n++]);
        cr_expect_eq(cuts[0].to, batch.tasks[cuts[0].partition].n);
    }
    cr_expect_eq(n, 3u);
    cr_expect_eq(cutter_next(&cutter, UINT32_MAX, cuts, &last), 0u);
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
    cr_expect_eq(cutter_next(&cutter, UINT32_MAX, cuts, &last), (unsigned)PARTITIONS);
    cr_expect(last);
    batch_release(&batch);
    fold_core_drop(core);
}
