#include "storage/fold/cut.h"

/* What a task costs Redis in one bucket, tenths of a microsecond, as measured with late events of
 * 10,000 pages; and a partition's state, which has the cursors.  A task of a busy page costs a
 * fraction of that, and one with many names twice as much.  The pace (pace.h) follows.  With an
 * estimate that knew which keys are new, no fewer transactions took too long. */
static const uint8_t tenths[WORK_KINDS] = {
    [TASK_PAGE] = 34, [TASK_SITE] = 11, [TASK_VISIT] = 22, [TASK_USER] = 11, [WORK_STATE] = 30};

/* Work, and what it is expected to cost. */
struct costs {
    struct work work;
    size_t ns; /* nanoseconds */
};

/* Add @n of @kind at @at_s to @costs. */
static void add_cost(
    struct costs *costs, const struct pace *pace, unsigned kind, unsigned n, int64_t at_s)
{
    costs->work.tenths[kind] += tenths[kind] * n;
    costs->work.newest_s = at_s > costs->work.newest_s ? at_s : costs->work.newest_s;
    costs->ns += (size_t)tenths[kind] * n * pace_percent(pace, kind, at_s);
}

static void add_task(struct costs *costs, const struct pace *pace, struct write_plan *plan,
    const struct row *row, enum task_kind kind)
{
    write_plan_in(plan, row->site->zone);
    write_plan_at(plan, row->at_s);
    add_cost(costs, pace, kind, (unsigned)plan->n, row->at_s);
}

unsigned cut_first(const struct batch *batch, unsigned n_partitions)
{
    unsigned most = 0;
    size_t all = 0;
    for (unsigned p = 0; p < n_partitions; p++) {
        all += batch->tasks[p].n;
        most = batch->tasks[p].n > batch->tasks[most].n ? p : most;
    }
    return batch->tasks[most].n * n_partitions > 2 * all ? most : 0;
}

void cut_all_left(struct cut_left *left, const struct core *core)
{
    for (unsigned p = 0; p < core->partitions.n; p++) {
        atomic_store(&left->has[p], true);
    }
}

static void take_partition(struct cutter *cutter, unsigned first)
{
    const unsigned n = cutter->core->partitions.n;
    cutter->partition = n;
    for (unsigned i = 0; i < n && cutter->partition == n; i++) {
        unsigned p = (first + i) % n;
        if (atomic_exchange(&cutter->left->has[p], false)) {
            cutter->partition = p;
        }
    }
}

void cutter_begin(struct cutter *cutter, struct core *core, const struct batch *batch,
    struct cut_left *left, unsigned first)
{
    *cutter = (struct cutter){.core = core, .batch = batch, .left = left};
    take_partition(cutter, first);
}

/* Where the tasks of a partition may be cut: behind a stripe, an entry, an event. */
struct cut_places {
    struct cut_place {
        uint32_t task;      /* the number of the task behind; the first one's: no place yet */
        struct costs costs; /* of the tasks in front */
    } stripe_end, entry_end, event_end;
};

/* May the tasks be cut in front of task @i, which is not the first one of the cut?  Those before
 * it have @costs. */
static void note_places(struct cut_places *places, const struct batch *batch,
    const struct batch_tasks *tasks, uint32_t i, const struct costs *costs)
{
    const struct cut_place here = {i, *costs};
    uint32_t row = task_row_number(tasks->tasks[i]);
    uint32_t before = task_row_number(tasks->tasks[i - 1]);
    if (task_stripe(batch->rows, tasks->tasks[i]) !=
        task_stripe(batch->rows, tasks->tasks[i - 1])) {
        places->stripe_end = here;
    } else if (row != before) {
        places->event_end = here;
        places->entry_end = before < batch_entry_start(batch, row) ? here : places->entry_end;
    }
}

static void cut_costs(struct cut *cut, const struct costs *costs)
{
    cut->us = (uint32_t)(costs->ns / 1000);
    cut->work = costs->work;
}

/* End @cut at the best of the places. */
static void cut_at(struct cut *cut, const struct cut_places *places, const struct batch *batch,
    const struct batch_tasks *tasks)
{
    bool behind_stripe = places->stripe_end.task > cut->from;
    bool behind_entry = places->entry_end.task > cut->from;
    const struct cut_place *place = behind_stripe  ? &places->stripe_end
                                    : behind_entry ? &places->entry_end
                                                   : &places->event_end;
    cut->to = place->task;
    cut_costs(cut, &place->costs);
    uint32_t row = task_row_number(tasks->tasks[cut->to]);
    cut->end_stripe = (uint8_t)task_stripe(batch->rows, tasks->tasks[cut->to]);
    cut->to_row = behind_stripe ? 0 : behind_entry ? batch_entry_start(batch, row) : row;
}

/* Cut what fits off the partition at hand.  True: the cut has all that was left of it. */
static bool cut_partition(
    const struct cutter *cutter, const struct pace *pace, size_t limit_us, struct cut *ret)
{
    const struct batch *batch = cutter->batch;
    const struct batch_tasks *tasks = &batch->tasks[cutter->partition];
    const uint32_t from = cutter->task;
    struct cut_places places = {{.task = from}, {.task = from}, {.task = from}};
    struct partition_view view = core_view(cutter->core, cutter->partition);
    struct write_plan plan;
    struct costs costs = {.ns = 0};
    *ret = (struct cut){
        .partition = cutter->partition, .from = from, .first_stripe = cutter->first_stripe};
    write_plan_init(&plan, &view.retention, &view.state); /* the state may be newer by now */
    add_cost(&costs, pace, WORK_STATE, 1, 0);
    for (uint32_t i = from; i < tasks->n; i++) {
        if (i > from) {
            note_places(&places, batch, tasks, i, &costs);
        }
        add_task(&costs, pace, &plan, &batch->rows[task_row_number(tasks->tasks[i])],
            task_kind_of(tasks->tasks[i]));
        if (costs.ns > limit_us * 1000 &&
            (places.stripe_end.task > from || places.event_end.task > from)) {
            cut_at(ret, &places, batch, tasks);
            return false;
        }
    }
    ret->to = (uint32_t)tasks->n;
    ret->end_stripe = LOG_STRIPES;
    cut_costs(ret, &costs);
    return true;
}

unsigned cutter_next(struct cutter *cutter, const struct pace *pace, uint32_t limit_us,
    struct cut ret[CUTS_MAX], bool *ret_last)
{
    unsigned n = 0;
    size_t us = 0;
    bool whole = true;
    const unsigned n_partitions = cutter->core->partitions.n;
    const unsigned most = cutter->core->is_spread ? 1 : CUTS_MAX;
    while (whole && n < most && cutter->partition < n_partitions) {
        whole = cut_partition(cutter, pace, limit_us, &ret[n]);
        if (n > 0 && (!whole || us + ret[n].us > limit_us)) {
            break; /* the next transaction begins with this partition */
        }
        us += ret[n].us;
        cutter->task = whole ? 0 : ret[n].to;
        cutter->first_stripe = whole ? 0 : ret[n].end_stripe;
        if (whole) {
            take_partition(cutter, cutter->partition + 1);
        }
        n++;
    }
    *ret_last = cutter->partition == n_partitions;
    return n;
}
