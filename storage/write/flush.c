#include "storage/write/flush.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/time/write_plan.h"

/* Rough cost in Redis of writing one event to one bucket, in microseconds, measured with SLOWLOG.
 * A part stays below a limit that follows what scripts really take (pace.h), so that none holds
 * Redis for more than about half of the 5 ms allowed, whatever is in it: late events go to up to
 * four buckets, expiries and long names cost too. */
#define PAGE_US      7   /* an increment, two PFADD, and their keys */
#define SAME_PAGE_US 1   /* one more element for what is in the part already */
#define VISIT_US     3   /* an entry read and written */
#define START_US     3   /* a visit counted, where the minute is new */
#define SEEN_US      3   /* another log of who saw what */
#define EXPIRY_US    3   /* PEXPIREAT of what is written late */
#define USER_US      3   /* a user's index, looked up or given, and a bit */
#define ACTION_US    1   /* a further bit */
#define USERS_US     16  /* the first user of a site and day: indices are given, a bitmap is made */
#define BITMAP_US    4   /* a further bitmap */
#define UNIT_US      3   /* a marker read and written */
#define BYTES_PER_US 256 /* of a name, which stands in several keys */

#define PAGES_SEEN 512 /* a page that is forgotten among so many is taken for a new one */

/* A part being filled, one per partition. */
struct draft {
    uint32_t *tasks;
    size_t n, capacity;
    size_t us;
    struct part_unit *units;
    size_t n_units, units_capacity;
    struct write_plan plan;           /* which buckets an event goes to, as far as is known now */
    uint64_t pages[PAGES_SEEN];       /* hashes of some pages in it, with their minutes; 0: none */
    struct slice site, visit_site;    /* of the last TASK_SITE and TASK_VISIT.. */
    int64_t minute_s, visit_minute_s; /* ..and their minutes */
    struct slice user_site;           /* of the last user.. */
    int64_t user_day;                 /* ..and the day (UTC: this is a guess of costs) */
    struct retention retention;       /* what the plan points to */
    uint32_t unit_tasks;              /* of the unit at hand so far */
};

/* Kept from flush to flush: made anew each time, it would be 70 pages of memory fresh from the
 * system, which cost more than all that is done with them. */
struct flush_maker {
    struct core *core;
    const struct pace *pace;
    struct flush *flush;
    uint32_t max_us; /* of a part */
    struct part *parts;
    size_t n_parts, parts_capacity;
    size_t units_capacity;
    unsigned n_drafts;
    struct draft drafts[];
};

static void clear_draft(struct draft *draft)
{
    draft->n = draft->n_units = 0;
    draft->us = 0;
    draft->minute_s = draft->visit_minute_s = draft->user_day = INT64_MIN;
    memset(draft->pages, 0, sizeof(draft->pages));
}

/* Move a draft into a part of the flush. */
static bool close_draft(struct flush_maker *a, unsigned partition)
{
    struct draft *draft = &a->drafts[partition];
    if (draft->n == 0) {
        return true;
    }
    uint32_t *tasks = arena_alloc(&a->flush->arena, draft->n * sizeof(*tasks));
    struct part_unit *units = arena_alloc(&a->flush->arena, (draft->n_units + 1) * sizeof(*units));
    if (tasks == NULL || units == NULL ||
        !array_reserve(&a->parts, &a->parts_capacity, a->n_parts, sizeof(*a->parts))) {
        return false;
    }
    memcpy(tasks, draft->tasks, draft->n * sizeof(*tasks));
    if (draft->n_units > 0) {
        memcpy(units, draft->units, draft->n_units * sizeof(*units));
    }
    a->parts[a->n_parts++] = (struct part){.flush = a->flush,
        .partition = partition,
        .gen_ms = a->flush->gen_ms,
        .tasks = tasks,
        .n_tasks = (uint32_t)draft->n,
        .units = units,
        .n_units = (uint32_t)draft->n_units,
        .us = (uint32_t)draft->us};
    clear_draft(draft);
    return true;
}

/* Is @row of the same site and minute as the last one?  Remembers it. */
static bool continues(struct slice *site, int64_t *minute_s, const struct row *row, int64_t at_s)
{
    bool same = *minute_s == at_s && slice_equal(*site, row->site);
    *site = row->site;
    *minute_s = at_s;
    return same;
}

/* Is the page of @row in the draft already, in the same minute?  Remembers it. */
static bool repeats(struct draft *draft, const struct row *row, int64_t minute_s)
{
    uint64_t mark = (row->page_hash ^ (uint64_t)minute_s) | 1;
    uint64_t *slot = &draft->pages[mark >> 1 & (PAGES_SEEN - 1)];
    bool same = *slot == mark;
    *slot = mark;
    return same;
}

/* Of a visitor with a name: see merge_activity.h. */
static size_t activity_cost(struct draft *draft, const struct row *row)
{
    if (row->user.n == 0) {
        return 0;
    }
    size_t us = USER_US + row->n_actions * (size_t)ACTION_US + row->user.n / BYTES_PER_US;
    bool more = continues(&draft->user_site, &draft->user_day, row, row->at_s / 86400);
    return more ? us : us + USERS_US + row->n_actions * (size_t)BITMAP_US;
}

static size_t cost(struct draft *draft, const struct row *row, enum task_kind kind)
{
    write_plan_in(&draft->plan, row->zone);
    write_plan_at(&draft->plan, row->at_s);
    size_t targets = draft->plan.n;
    int64_t minute_s = draft->plan.minute_s;
    size_t visit_us = VISIT_US + activity_cost(draft, row);
    size_t expiry = targets > 1 ? EXPIRY_US : 0;
    switch (kind) {
    case TASK_PAGE:
        return repeats(draft, row, minute_s)
                   ? targets * SAME_PAGE_US
                   : targets * (PAGE_US + expiry + row->page.n / BYTES_PER_US);
    case TASK_SITE:
        return continues(&draft->site, &draft->minute_s, row, minute_s)
                   ? targets * SAME_PAGE_US
                   : targets * (PAGE_US + expiry);
    case TASK_VISIT:
        return continues(&draft->visit_site, &draft->visit_minute_s, row, minute_s)
                   ? visit_us + row->page.n / BYTES_PER_US
                   : visit_us + SEEN_US +
                         targets * (START_US + expiry + row->page.n / BYTES_PER_US);
    }
    return PAGE_US;
}

/* One more task of @unit (0: of none) in the partition. */
static bool count_unit_task(struct flush_maker *a, unsigned partition, uint32_t unit)
{
    struct draft *draft = &a->drafts[partition];
    if (unit == 0) {
        return true;
    }
    if (draft->n_units == 0 || draft->units[draft->n_units - 1].unit != unit) {
        if (!array_reserve(
                &draft->units, &draft->units_capacity, draft->n_units, sizeof(*draft->units))) {
            return false;
        }
        draft->units[draft->n_units++] = (struct part_unit){.unit = unit,
            .from = draft->unit_tasks,
            .mark = a->flush->units[unit - 1].direct ? UNIT_DIRECT : UNIT_OPEN};
        draft->us += UNIT_US;
    }
    draft->units[draft->n_units - 1].n++;
    draft->unit_tasks++;
    return true;
}

static bool add_task(struct flush_maker *a, unsigned partition, size_t row, enum task_kind kind)
{
    struct draft *draft = &a->drafts[partition];
    if (!array_reserve(&draft->tasks, &draft->capacity, draft->n, sizeof(*draft->tasks)) ||
        !count_unit_task(a, partition, a->flush->rows[row].unit)) {
        return false;
    }
    draft->tasks[draft->n++] = (uint32_t)(row << 2 | kind);
    draft->us += cost(draft, &a->flush->rows[row], kind);
    return draft->us < a->max_us || close_draft(a, partition);
}

static bool copy_slice(struct arena *arena, struct slice *slice)
{
    char *copy = arena_alloc(arena, slice->n);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, slice->p, slice->n);
    slice->p = copy;
    return true;
}

static bool copy_actions(struct arena *arena, struct row *row)
{
    if (row->n_actions == 0) {
        return true;
    }
    struct slice *actions = arena_alloc(arena, row->n_actions * sizeof(*actions));
    if (actions == NULL) {
        return false;
    }
    memcpy(actions, row->actions, row->n_actions * sizeof(*actions));
    for (unsigned i = 0; i < row->n_actions; i++) {
        if (!copy_slice(arena, &actions[i])) {
            return false;
        }
    }
    row->actions = actions;
    return true;
}

/* Rows of one site often follow each other, and share its name then. */
static bool copy_row(struct flush *flush, const struct row *from)
{
    struct row *to = &flush->rows[flush->n_rows];
    *to = *from;
    if (flush->n_rows > 0 && slice_equal(to->site, to[-1].site)) {
        to->site = to[-1].site;
    } else if (!copy_slice(&flush->arena, &to->site)) {
        return false;
    }
    flush->n_rows++;
    if (to->user.n > 0 &&
        (!copy_slice(&flush->arena, &to->user) || !copy_actions(&flush->arena, to))) {
        return false;
    }
    return copy_slice(&flush->arena, &to->page);
}

/* As settle.lua would write it: see key.h. */
static bool make_record(struct flush *flush, const struct claim *claim)
{
    struct unit *unit = &flush->units[flush->n_units - 1];
    size_t n = 59 + claim->answer.n;
    char *record = arena_alloc(&flush->arena, n + 1);
    if (record == NULL) {
        return false;
    }
    (void)snprintf(record, 28, "D%013lld%013d", (long long)claim->gen_ms, 0);
    memcpy(record + 27, claim->owner.bytes, sizeof(claim->owner.bytes));
    memcpy(record + 43, claim->body.bytes, sizeof(claim->body.bytes));
    memcpy(record + 59, claim->answer.p, claim->answer.n);
    unit->direct = true;
    unit->record = (struct slice){record, n};
    flush->n_direct++;
    return true;
}

/* The job has a key: its events are a unit.  Its number goes into *ret, 0 for a job without. */
static bool begin_unit(struct flush_maker *a, const struct storage_job *job, uint32_t *ret)
{
    struct flush *flush = a->flush;
    struct claim *claim = job->u.write.claim;
    *ret = 0;
    if (claim == NULL) {
        return true;
    }
    if (!array_reserve(&flush->units, &a->units_capacity, flush->n_units, sizeof(*flush->units))) {
        return false;
    }
    flush->units[flush->n_units++] = (struct unit){.key = claim->key,
        .body = claim->body,
        .gen_ms = claim->gen_ms,
        .until_ms = claim->until_ms};
    *ret = claim->unit = (uint32_t)flush->n_units;
    if (claim->direct && !make_record(flush, claim)) {
        return false;
    }
    for (unsigned p = 0; p < a->n_drafts; p++) {
        a->drafts[p].unit_tasks = 0;
    }
    return true;
}

static bool fill(struct flush_maker *a, struct storage_job *jobs)
{
    struct flush *flush = a->flush;
    for (struct storage_job *job = jobs; job != NULL; job = job->next) {
        const struct job_rows *rows = job->rows;
        uint32_t unit;
        if (!begin_unit(a, job, &unit)) {
            return false;
        }
        for (size_t i = 0; i < rows->n; i++) {
            size_t row = flush->n_rows;
            if (!copy_row(flush, &rows->rows[i])) {
                return false;
            }
            flush->rows[row].unit = unit;
            const struct row *r = &flush->rows[row];
            if (!add_task(a, r->page_partition, row, TASK_PAGE) ||
                !add_task(a, r->site_partition, row, TASK_SITE) ||
                (r->has_visitor && !add_task(a, r->visitor_partition, row, TASK_VISIT))) {
                return false;
            }
        }
    }
    for (unsigned p = 0; p < a->n_drafts; p++) {
        if (!close_draft(a, p)) {
            return false;
        }
    }
    return true;
}

static size_t count_rows(const struct storage_job *jobs)
{
    size_t n = 0;
    for (; jobs != NULL; jobs = jobs->next) {
        n += ((const struct job_rows *)jobs->rows)->n;
    }
    return n;
}

struct storage_job *flush_take_direct(struct flush *flush, uint32_t unit)
{
    struct storage_job **at = &flush->jobs;
    flush->units[unit - 1].direct = false;
    flush->n_direct--;
    for (size_t i = 0; i < flush->n_parts; i++) {
        part_units_set(flush->parts[i].units, flush->parts[i].n_units, unit, UNIT_GONE);
    }
    while (*at != NULL && ((*at)->u.write.claim == NULL || (*at)->u.write.claim->unit != unit)) {
        at = &(*at)->next;
    }
    struct storage_job *job = *at;
    if (job != NULL) {
        *at = job->next;
    }
    return job;
}

struct flush_maker *flush_maker_new(struct core *core, const struct pace *pace)
{
    struct flush_maker *a = calloc(1, sizeof(*a) + core->partitions.n * sizeof(a->drafts[0]));
    if (a != NULL) {
        a->core = core;
        a->pace = pace;
        a->n_drafts = core->partitions.n;
        for (unsigned p = 0; p < a->n_drafts; p++) {
            clear_draft(&a->drafts[p]);
        }
    }
    return a;
}

void flush_maker_free(struct flush_maker *a)
{
    for (unsigned p = 0; a != NULL && p < a->n_drafts; p++) {
        free(a->drafts[p].tasks);
        free(a->drafts[p].units);
    }
    free(a);
}

static void begin(struct flush_maker *a, struct flush *flush)
{
    a->flush = flush;
    a->max_us = pace_limit_us(a->pace);
    a->parts = NULL;
    a->n_parts = a->parts_capacity = a->units_capacity = 0;
    for (unsigned p = 0; p < a->n_drafts; p++) {
        struct draft *draft = &a->drafts[p];
        struct partition_view view = core_view(a->core, p);
        draft->retention = view.retention;
        write_plan_init(&draft->plan, zone_utc(), &draft->retention, &view.state);
        if (draft->n > 0) { /* the last one was not finished */
            clear_draft(draft);
        }
    }
}

struct flush *flush_make(struct flush_maker *a, struct storage_job *jobs, int64_t gen_ms)
{
    struct flush *flush = calloc(1, sizeof(*flush));
    if (flush == NULL) {
        return NULL;
    }
    begin(a, flush);
    flush->gen_ms = gen_ms;
    flush->rows = calloc(count_rows(jobs) + 1, sizeof(*flush->rows));
    bool ok = flush->rows != NULL && fill(a, jobs);
    flush->parts = a->parts;
    flush->n_parts = a->n_parts;
    if (!ok) {
        flush_free(flush);
        return NULL;
    }
    for (struct storage_job *job = jobs; job != NULL; job = job->next) {
        free(job->rows);
        job->rows = NULL;
    }
    flush->jobs = jobs;
    return flush;
}

void flush_free(struct flush *flush)
{
    if (flush != NULL) {
        arena_release(&flush->arena);
        free(flush->rows);
        free(flush->units);
        free(flush->parts);
        free(flush);
    }
}
