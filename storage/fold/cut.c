#include "storage/fold/cut.h"

/* Rough cost in Redis of counting one event in one bucket, in microseconds, measured with the slow
 * log.  Late events go to up to four buckets; expiries and long names cost too. */
#define PAGE_US      5   /* an increment, two PFADD, and their keys */
#define SAME_PAGE_US 1   /* one more element for what is there already */
#define VISIT_US     1   /* an entry written */
#define START_US     3   /* a visit counted, where the minute is new */
#define SEEN_US      3   /* another log of who saw what */
#define EXPIRY_US    3   /* PEXPIREAT of what is written late */
#define USER_US      2   /* a user's index given, and a bit */
#define ACTION_US    1   /* a further bit */
#define USERS_US     10  /* the first user of a site and day: indices are given, a bitmap is made */
#define BITMAP_US    3   /* a further bitmap */
#define STATE_US     3   /* a partition's state: its cursors */
#define BYTES_PER_US 256 /* of a name, which stands in several keys */

#define PAGES_SEEN 512 /* a page that is forgotten among so many is taken for a new one */

/* What lies in the transaction already, as far as it is remembered. */
struct estimate {
    struct write_plan plan; /* which buckets an event goes to, as far as is known now */
    struct partition_view view;
    uint64_t pages[PAGES_SEEN];    /* hashes of some pages, with their minutes; 0: none */
    struct slice site, visit_site; /* of the last TASK_SITE and TASK_VISIT.. */
    int64_t minute_s, visit_minute_s;
    struct slice user_site; /* of the last user.. */
    int64_t user_day;       /* ..and the day, of UTC: this is a guess of costs */
};

static void estimate_init(struct estimate *e, struct core *core, unsigned partition)
{
    memset(e->pages, 0, sizeof(e->pages));
    e->view = core_view(core, partition);
    write_plan_init(&e->plan, zone_utc(), &e->view.retention, &e->view.state);
    e->site = e->visit_site = e->user_site = (struct slice){NULL, 0};
    e->minute_s = e->visit_minute_s = e->user_day = INT64_MIN;
}

/* Is @row of the same site and time as the last one?  Remembers it. */
static bool continues(struct slice *site, int64_t *time, const struct row *row, int64_t at)
{
    bool same = *time == at && slice_equal(*site, row->site);
    *site = row->site;
    *time = at;
    return same;
}

/* Was the page of @row there, in the same minute?  Remembers it. */
static bool repeats(struct estimate *e, const struct row *row, int64_t minute_s)
{
    uint64_t mark = (row->page_hash ^ (uint64_t)minute_s) | 1;
    uint64_t *slot = &e->pages[mark >> 1 & (PAGES_SEEN - 1)];
    bool same = *slot == mark;
    *slot = mark;
    return same;
}

static size_t activity_cost(struct estimate *e, const struct row *row)
{
    if (row->user.n == 0) {
        return 0;
    }
    size_t us = USER_US + row->n_actions * (size_t)ACTION_US + row->user.n / BYTES_PER_US;
    bool more = continues(&e->user_site, &e->user_day, row, row->at_s / 86400);
    return more ? us : us + USERS_US + row->n_actions * (size_t)BITMAP_US;
}

static size_t visit_cost(struct estimate *e, const struct row *row, size_t start_us)
{
    size_t us = VISIT_US + activity_cost(e, row) + row->page.n / BYTES_PER_US;
    bool more = continues(&e->visit_site, &e->visit_minute_s, row, e->plan.minute_s);
    return more ? us : us + SEEN_US + start_us;
}

static size_t task_cost(struct estimate *e, const struct row *row, enum task_kind kind)
{
    write_plan_in(&e->plan, row->zone);
    write_plan_at(&e->plan, row->at_s);
    size_t targets = e->plan.n;
    size_t expiry = targets > 1 ? EXPIRY_US : 0;
    size_t name = row->page.n / BYTES_PER_US;
    switch (kind) {
    case TASK_PAGE:
        return targets *
               (repeats(e, row, e->plan.minute_s) ? SAME_PAGE_US : PAGE_US + expiry + name);
    case TASK_SITE:
        return targets * (continues(&e->site, &e->minute_s, row, e->plan.minute_s)
                                 ? SAME_PAGE_US
                                 : PAGE_US + expiry);
    case TASK_VISIT:
        return visit_cost(e, row, targets * (START_US + expiry + name));
    }
    return PAGE_US;
}

void cutter_begin(struct cutter *cutter, struct core *core, const struct batch *batch)
{
    *cutter = (struct cutter){.core = core, .batch = batch};
}

/* The row of task @i, or the end of all rows. */
static uint32_t row_of(const struct batch *batch, const struct batch_tasks *tasks, uint32_t i)
{
    return i < tasks->n ? tasks->tasks[i] >> 2 : (uint32_t)batch->n_rows;
}

/* What fits of the partition at hand.  True: all the rest of it. */
static bool cut_partition(const struct cutter *cutter, size_t limit_us, struct cut *ret)
{
    const struct batch *batch = cutter->batch;
    const struct batch_tasks *tasks = &batch->tasks[cutter->partition];
    struct estimate e;
    size_t us = STATE_US;
    uint32_t entry_end = cutter->task; /* a cut behind an entry, and behind an event */
    uint32_t event_end = cutter->task;
    estimate_init(&e, cutter->core, cutter->partition);
    *ret = (struct cut){.partition = cutter->partition, .from = cutter->task};
    for (uint32_t i = cutter->task; i < tasks->n; i++) {
        uint32_t row = row_of(batch, tasks, i);
        if (i > cutter->task && row != row_of(batch, tasks, i - 1)) {
            event_end = i;
            bool starts = row_of(batch, tasks, i - 1) < batch_entry_start(batch, row);
            entry_end = starts ? i : entry_end;
        }
        us += task_cost(&e, &batch->rows[row], (enum task_kind)(tasks->tasks[i] & 3));
        if (us > limit_us && event_end > cutter->task) {
            ret->to = entry_end > cutter->task ? entry_end : event_end;
            row = row_of(batch, tasks, ret->to);
            ret->to_row = entry_end > cutter->task ? batch_entry_start(batch, row) : row;
            ret->us = (uint32_t)us;
            return false;
        }
    }
    ret->to = (uint32_t)tasks->n;
    ret->to_row = (uint32_t)batch->n_rows;
    ret->us = (uint32_t)us;
    return true;
}

unsigned cutter_next(
    struct cutter *cutter, uint32_t limit_us, struct cut ret[PARTITIONS_MAX], bool *ret_last)
{
    unsigned n = 0;
    size_t us = 0;
    while (cutter->partition < cutter->core->partitions.n) {
        bool whole = cut_partition(cutter, limit_us, &ret[n]);
        if (n > 0 && (!whole || us + ret[n].us > limit_us)) {
            break; /* the next transaction begins with it */
        }
        us += ret[n].us;
        cutter->task = whole ? 0 : ret[n].to;
        cutter->partition += whole;
        n++;
        if (!whole) {
            break;
        }
    }
    *ret_last = cutter->partition == cutter->core->partitions.n;
    return n;
}
