#include "storage/fold/batch_tasks.h"

#include <criterion/criterion.h>

#include "storage/fold/batch.h"
#include "tests/lib/fold_fixture.h"

/* Stripes: what of a partition lies together in Redis. */
TestSuite(batch_tasks, .timeout = 60);

#define LOG "00000000000000aa"

/* Processes go on where others have stopped, so the stripe of a task is a part of the layout. */
Test(batch_tasks, the_stripes_of_tasks)
{
    struct row row = {.at_s = FOLD_NOW_S,
        .page_hash = UINT64_C(0xfedcba9876543210),
        .visitor = {{0x17, 0xff}},
        .user_id = {{0xfe, 0x01}}};
    cr_expect_eq(row_stripe(&row, TASK_PAGE), 5u);
    cr_expect_eq(row_stripe(&row, TASK_SITE), FOLD_NOW_S / 60 % 16);
    cr_expect_eq(row_stripe(&row, TASK_VISIT), 16u + 7u);
    cr_expect_eq(row_stripe(&row, TASK_USER), 16u + 14u);
    row.is_old = true;
    cr_expect_eq(row_stripe(&row, TASK_PAGE), FOLD_NOW_S / (7 * 86400) % 16);
    cr_expect_eq(row_stripe(&row, TASK_SITE), FOLD_NOW_S / (7 * 86400) % 16);
    cr_expect_eq(row_stripe(&row, TASK_VISIT), 16u + 7u);
    cr_expect_eq(row_stripe(&row, TASK_USER), 16u + 14u);
}

/* What arrives more than a day late is old: that does not change while it waits. */
Test(batch_tasks, what_is_old_is_told_by_its_arrival)
{
    struct core *core = fold_core_make(3);
    struct batch batch = {0};
    struct log_entry *entry = fold_entry(LOG, 1, FOLD_NOW_S, 1);
    entry->arrival_ms = (FOLD_NOW_S + 86400) * 1000;
    struct log_entry *late = fold_entry(LOG, 2, FOLD_NOW_S, 1);
    late->arrival_ms = (FOLD_NOW_S + 86401) * 1000;
    cr_assert_not_null(batch_add_log(&batch, LOG, 0));
    cr_assert(batch_add(&batch, entry) && batch_add(&batch, late));
    cr_assert(batch_finish(&batch, core));
    cr_assert_eq(batch.n_rows, 2u);
    cr_expect_not(batch.rows[0].is_old);
    cr_expect(batch.rows[1].is_old);
    batch_release(&batch);
    fold_core_drop(core);
}

Test(batch_tasks, tasks_are_sorted_by_stripe_and_row)
{
    struct core *core = fold_core_make(3);
    struct batch batch = {0};
    size_t n = 0;
    cr_assert_not_null(batch_add_log(&batch, LOG, 0));
    cr_assert(batch_add(&batch, fold_entry(LOG, 1, FOLD_NOW_S, 500)));
    cr_assert(batch_add(&batch, fold_entry(LOG, 2, FOLD_NOW_S + 90, 500)));
    cr_assert(batch_finish(&batch, core));
    for (unsigned p = 0; p < 3; p++) {
        const struct batch_tasks *tasks = &batch.tasks[p];
        for (size_t i = 1; i < tasks->n; i++) {
            unsigned is = task_stripe(batch.rows, tasks->tasks[i]);
            unsigned before = task_stripe(batch.rows, tasks->tasks[i - 1]);
            cr_assert(before < is || (before == is && tasks->tasks[i - 1] < tasks->tasks[i]));
        }
        n += tasks->n;
    }
    cr_expect_eq(n, 3 * 1000u, "a page, a site and a visitor each");
    batch_release(&batch);
    fold_core_drop(core);
}
