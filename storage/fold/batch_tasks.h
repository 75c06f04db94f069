/* batch_tasks.h - what is done with the rows of a batch in one partition, sorted by stripe.
 *
 * Layer: storage, pure.  Belongs to the fold's thread.
 *
 * What is done with a row (batch.h) is its tasks, which lie in up to four partitions:
 *
 *     the row           TASK_PAGE        TASK_SITE              TASK_VISIT         TASK_USER
 *     a page view       counts the page  counts site and values may begin a visit  sets days
 *     a named event     counts the name  the site has data      prolongs a visit   sets days
 *     activity alone    none             the site has data      none               sets days
 *
 * A row has TASK_VISIT if it has a visitor, and TASK_USER if it has a user.  Where the user is the
 * visitor, TASK_VISIT does the work of both.
 *
 * The tasks of a partition are sorted by stripe, and within a stripe by row.  What lies together in
 * Redis is of one stripe: a page with all its minutes, a minute of a site, a visitor.  So a batch
 * that is too much for one transaction is cut between stripes, and whatever it has for one key is
 * written at once.  Cut by time of arrival, late events would be written key by key: they spread
 * over the minutes of hours, and hardly two of a short cut have a minute and a page in common.
 *
 * Events that arrive more than a day late are mostly an import, in the order of time, and few of
 * them have a minute in common.  They have hours and days in common, so a week of a site is of one
 * stripe there, with its pages.  With a real log of thirteen years that saves nine PFADD of ten,
 * and a fourth of Redis's time.
 *
 * Each stripe has a position of its own in the cursor of a log (schema/log_state.h).  The stripe of
 * a task is a part of the data's layout, because processes go on where others have stopped.
 */
#ifndef STORAGE_FOLD_BATCH_TASKS_H
#define STORAGE_FOLD_BATCH_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/schema/hashed_event.h"

/* What a task does with a row.  A task is row << 2 | kind. */
enum task_kind { TASK_PAGE, TASK_SITE, TASK_VISIT, TASK_USER };

/* The number of the task's row in the batch. */
static inline uint32_t task_row_number(uint32_t task)
{
    return task >> 2;
}

static inline enum task_kind task_kind_of(uint32_t task)
{
    return (enum task_kind)(task & 3);
}

/* The stripe, below LOG_STRIPES, of the task of @kind that @row has. */
unsigned row_stripe(const struct row *row, enum task_kind kind);

/* The stripe of a task; @rows are the batch's. */
static inline unsigned task_stripe(const struct row *rows, uint32_t task)
{
    return row_stripe(&rows[task_row_number(task)], task_kind_of(task));
}

/* Zeroed it is empty. */
struct batch_tasks {
    uint32_t *tasks; /* owned */
    size_t n, capacity;
};

/* Forget all tasks.  Memory is kept, unless that is much. */
void batch_tasks_clear(struct batch_tasks *tasks);
void batch_tasks_release(struct batch_tasks *tasks);

/* Add the tasks of @row to those of its partitions.  @number is the row's in the batch, above those
 * of the rows before.  False: out of memory, and some of the tasks may be added. */
bool batch_tasks_add(struct batch_tasks tasks[PARTITIONS_MAX], const struct partitions *partitions,
    const struct row *row, size_t number) MUST_CHECK;

/* Take away the tasks of the rows from number @n_rows on.  Not behind batch_tasks_sort(). */
void batch_tasks_undo(struct batch_tasks *tasks, size_t n_rows);

/* Sort the tasks, which are in the order of rows, by stripe.  False: out of memory, and the tasks
 * are as they were. */
bool batch_tasks_sort(struct batch_tasks *tasks, const struct row *rows) MUST_CHECK;

#endif
