#include <criterion/criterion.h>

#include "storage/fold/batch.h"
#include "tests/lib/fold_fixture.h"

/* What the events of a batch are counted for beside their pages and sites. */
TestSuite(batch_values, .timeout = 60);

#define LOG "00000000000000aa"

/* A value whose visitors are counted at one site only is two of them.  Else it is one, whichever
 * chunks it comes in. */
Test(batch_values, are_those_of_all_chunks)
{
    static const struct event_value plain = {SLICE("DE"), DIMENSION_COUNTRY, false};
    static const struct event_value counted = {SLICE("DE"), DIMENSION_COUNTRY, true};
    const struct event events[] = {{.at_s = FOLD_NOW_S,
                                       .site = SLICE("a"),
                                       .page = SLICE("/"),
                                       .values = &plain,
                                       .n_values = 1},
        {.at_s = FOLD_NOW_S,
            .site = SLICE("b"),
            .page = SLICE("/"),
            .values = &counted,
            .n_values = 1},
        {.at_s = FOLD_NOW_S,
            .site = SLICE("c"),
            .page = SLICE("/"),
            .values = &counted,
            .n_values = 1}};
    static const uint32_t numbers[] = {0, 1, 1};
    struct core *core = fold_core_make(1);
    struct batch batch = {0};
    cr_assert_not_null(batch_add_log(&batch, LOG, 0));
    for (uint64_t i = 0; i < 3; i++) { /* an entry each */
        cr_assert(batch_add(&batch, fold_entry_of(LOG, i + 1, FOLD_NOW_S, &events[i], 1)));
    }
    cr_assert(batch_finish(&batch, core));
    cr_assert_eq(batch.n_values, 2u);
    cr_expect(!batch.values[0].with_visitors && batch.values[1].with_visitors);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(batch.rows[i].n_values, 1u);
        cr_expect_eq(batch.rows[i].values[0], numbers[i], "%zu", i);
    }
    batch_release(&batch);
    fold_core_drop(core);
}
