#include "storage/fold/batch_tasks.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/schema/log_state.h"
#include "storage/time/units.h"

#define TASKS_KEPT 4096 /* memory for more tasks than that is given back */

#define OLD_SPAN_S (7 * DAY_S) /* old events of a site lie together by spans of this length */

#define HALF_BITS 4 /* half of the stripes are of pages and sites, the others of visitors */
_Static_assert(LOG_STRIPES == 2 << HALF_BITS, "two halves");

unsigned row_stripe(const struct row *row, enum task_kind kind)
{
    const unsigned half = LOG_STRIPES / 2;
    if (row->is_old && (kind == TASK_PAGE || kind == TASK_SITE)) {
        return (unsigned)((uint64_t)row->at_s / OLD_SPAN_S % half);
    }
    switch (kind) {
    case TASK_PAGE: /* other bits of the hash than those that choose the partition */
        return (unsigned)(row->page_hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HALF_BITS));
    case TASK_SITE: /* all zones cut minutes at the same instants */
        return (unsigned)((uint64_t)row->at_s / MINUTE_S % half);
    case TASK_VISIT:
        return half + row->visitor.bytes[0] % half;
    case TASK_USER: /* TASK_VISIT has this stripe, too, where the user is the visitor */
        return half + row->user_id.bytes[0] % half;
    }
    return 0;
}

void batch_tasks_clear(struct batch_tasks *tasks)
{
    if (tasks->capacity > TASKS_KEPT) {
        batch_tasks_release(tasks);
    }
    tasks->n = 0;
}

void batch_tasks_release(struct batch_tasks *tasks)
{
    free(tasks->tasks);
    *tasks = (struct batch_tasks){0};
}

static bool add_task(struct batch_tasks *tasks, size_t row, enum task_kind kind)
{
    if (!array_reserve(&tasks->tasks, &tasks->capacity, tasks->n, sizeof(*tasks->tasks))) {
        return false;
    }
    tasks->tasks[tasks->n++] = (uint32_t)(row << 2 | kind);
    return true;
}

bool batch_tasks_add(struct batch_tasks tasks[PARTITIONS_MAX], const struct partitions *partitions,
    const struct row *row, size_t number)
{
    if (row->page.n > 0) {
        unsigned p = name_partition(partitions, row->site->name, row->page, row->page_hash);
        if (!add_task(&tasks[p], number, TASK_PAGE)) {
            return false;
        }
    }
    return add_task(&tasks[partition_of(partitions, row->site->hash)], number, TASK_SITE) &&
           (!row->has_visitor || add_task(&tasks[visitor_partition(partitions, &row->visitor)],
                                     number, TASK_VISIT)) &&
           (row->user.n == 0 || row->user_is_visitor ||
               add_task(&tasks[visitor_partition(partitions, &row->user_id)], number, TASK_USER));
}

void batch_tasks_undo(struct batch_tasks *tasks, size_t n_rows)
{
    while (tasks->n > 0 && task_row_number(tasks->tasks[tasks->n - 1]) >= n_rows) {
        tasks->n--;
    }
}

/* Source: counting sort, which is stable. */
bool batch_tasks_sort(struct batch_tasks *tasks, const struct row *rows)
{
    uint32_t next[LOG_STRIPES + 1] = {0};
    if (tasks->n < 2) {
        return true;
    }
    uint32_t *sorted = malloc(tasks->capacity * sizeof(*sorted));
    if (sorted == NULL) {
        return false;
    }
    for (size_t i = 0; i < tasks->n; i++) {
        next[task_stripe(rows, tasks->tasks[i]) + 1]++;
    }
    for (unsigned c = 1; c < LOG_STRIPES; c++) {
        next[c] += next[c - 1];
    }
    for (size_t i = 0; i < tasks->n; i++) {
        sorted[next[task_stripe(rows, tasks->tasks[i])]++] = tasks->tasks[i];
    }
    free(tasks->tasks);
    tasks->tasks = sorted;
    return true;
}
