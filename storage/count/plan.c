#include "storage/count/plan.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/read/listed_keys.h"
#include "storage/read/plan.h"
#include "storage/read/window.h"

/* A question reads so many fields at most: a set of 1,000 pages, in many partitions, over a day. */
#define SUMS_MAX      2000000
#define SUM_BYTES_MAX (128 << 20) /* bytes of fields' names: Redis reads some 70 MB a second */

/* Widen the window until every portion can tile it. */
static bool widen_all(const struct count_question *q, struct window *window)
{
    struct part_set partitions = {{0}};
    for (size_t i = 0; i < q->n_portions; i++) {
        part_set_add(&partitions, q->portions[i].partition);
    }
    return window_widen(&q->read, &partitions, window);
}

static bool is_about_step(enum storage_err err)
{
    return err == STORAGE_TOO_FINE || err == STORAGE_TOO_MANY || err == STORAGE_TOO_BROAD;
}

/* Do two partitions' states tile every window alike?  Partitions are mostly rolled up alike. */
static bool tile_alike(const struct partition_view *a, const struct partition_view *b)
{
    return memcmp(&a->state, &b->state, sizeof(a->state)) == 0 &&
           memcmp(&a->retention, &b->retention, sizeof(a->retention)) == 0;
}

/* A portion before @portion that has the same plan.  NULL: none has. */
static const struct portion *planned_alike(
    const struct count_question *q, const struct portion *portion)
{
    const struct partition_view *view = portion_view(q, portion);
    for (const struct portion *other = q->portions; other < portion; other++) {
        if (tile_alike(portion_view(q, other), view)) {
            return other;
        }
    }
    return NULL;
}

static void lend_plan(const struct portion *from, struct portion *to)
{
    portion_drop_plan(to);
    to->cover = from->cover;
    to->ends = from->ends;
    to->plan_lent = true;
}

/* Plan the covers of all points, one behind the other. */
static enum storage_err plan_portion(struct count_question *q, struct portion *portion)
{
    const struct portion *alike = planned_alike(q, portion);
    if (alike != NULL) {
        lend_plan(alike, portion);
        return STORAGE_OK;
    }
    if (portion->plan_lent) {
        portion_drop_plan(portion);
    }
    struct cover_basis basis = proved_basis(&q->read, portion_view(q, portion));
    cover_clear(&portion->cover);
    for (size_t i = 0; i < q->tally.n_points; i++) {
        enum storage_err err = plan_error(
            cover_append(&basis, q->tally.points[i].window, BUCKETS_MAX, &portion->cover));
        if (err != STORAGE_OK) {
            return err;
        }
        if (!array_reserve(&portion->ends, &portion->ends_capacity, i, sizeof(*portion->ends))) {
            return STORAGE_NOMEM;
        }
        portion->ends[i] = portion->cover.n;
    }
    return STORAGE_OK;
}

/* What it costs to read a plan. */
struct load {
    size_t sketches, sums; /* how many are read */
    size_t sum_bytes;      /* bytes of names in the commands that ask for sums */
    size_t keys;           /* keys that explain would list */
    size_t key_bytes;      /* bytes of pages' names in these keys */
};

static void add_load(struct load *load, const struct portion *portion)
{
    size_t n = portion->cover.n;
    size_t sums = portion_reads(portion, portion->metrics & ~METRICS_SKETCHES, n);
    size_t sketches = portion_reads(portion, portion->metrics & METRICS_SKETCHES, n);
    load->sums += sums;
    load->sketches += sketches;
    for (size_t i = 0; sums > 0 && i < portion->n_pages; i++) {
        load->sum_bytes += portion->pages[i]->n * (sums / portion->n_pages);
    }
    for (enum metric metric = 0; metric < METRICS; metric++) {
        load->keys += n * portion_keys(portion, metric);
    }
    for (size_t i = 0; sketches > 0 && i < portion->n_pages; i++) {
        load->key_bytes += portion->pages[i]->n * (sketches / portion->n_pages);
    }
}

static bool is_too_much(const struct load *load, bool explain)
{
    return load->sketches > READS_MAX || load->sums > SUMS_MAX || load->sum_bytes > SUM_BYTES_MAX ||
           (explain && (load->keys > COUNTED_KEYS_MAX || load->key_bytes > COUNTED_BYTES_MAX));
}

/* Plan all portions for @window, which @step cuts into points. */
static enum storage_err plan_portions(
    struct count_question *q, enum step step, struct window window)
{
    enum storage_err err = STORAGE_OK;
    struct load load = {0};
    struct part_set viewed = {{0}};
    if (!tally_cut(&q->tally, q->job->zone, step, window) ||
        !array_reserve(&q->known, &q->known_capacity, q->tally.n_points, sizeof(*q->known))) {
        return STORAGE_NOMEM;
    }
    /* Stop when the load is too much: the plans of a thousand pages take memory, too. */
    for (size_t i = 0; err == STORAGE_OK && i < q->n_portions; i++) {
        unsigned p = q->portions[i].partition;
        if (!part_set_has(&viewed, p)) {
            (void)proved_view(&q->read, p);
        }
        part_set_add(&viewed, p);
        err = plan_portion(q, &q->portions[i]);
        add_load(&load, &q->portions[i]);
        if (err == STORAGE_OK && is_too_much(&load, q->job->asked.explain)) {
            err = STORAGE_TOO_BROAD;
        }
    }
    q->read.keys_planned = load.keys;
    return err;
}

/* Plan for @window, which works as a whole, by the finest step that works: @step or a coarser one.
 * *ret is that step, or STEP_NONE. */
static enum storage_err plan_coarser(
    struct count_question *q, enum step step, struct window window, enum step *ret)
{
    enum storage_err none = STORAGE_TOO_FINE;
    for (*ret = step; *ret <= STEP_MONTH; (*ret)++) {
        enum storage_err err = plan_portions(q, *ret, window);
        if (err != STORAGE_NOT_KEPT && err != STORAGE_TOO_BROAD) {
            return err;
        }
        none = err == STORAGE_TOO_BROAD ? err : none;
    }
    *ret = STEP_NONE;
    return none;
}

static enum storage_err plan_auto(
    struct count_question *q, struct window window, enum step *ret_used)
{
    enum step finest = step_fitting(q->job->zone, window, STEP_AUTO_MAX);
    return finest == STEP_NONE ? STORAGE_TOO_MANY : plan_coarser(q, finest, window, ret_used);
}

static enum storage_err plan_step(struct count_question *q, struct window window)
{
    const struct count_job *job = q->job;
    if (step_count(job->zone, job->step, window, STEP_POINTS_MAX) > STEP_POINTS_MAX) {
        return STORAGE_TOO_MANY;
    }
    enum storage_err err = plan_portions(q, job->step, window);
    return err == STORAGE_NOT_KEPT ? STORAGE_TOO_FINE : err;
}

/* Plan a series over @window, which works as a whole, by the step that is asked for; *ret_used is
 * that step.  If the step does not work, *ret_used is the finest one that does, or STEP_NONE. */
static enum storage_err plan_series(
    struct count_question *q, struct window window, enum step *ret_used)
{
    *ret_used = q->job->step;
    enum storage_err err =
        q->job->step == STEP_AUTO ? plan_auto(q, window, ret_used) : plan_step(q, window);
    if (!is_about_step(err) || *ret_used == STEP_NONE) {
        return err;
    }
    enum step finest = step_fitting(q->job->zone, window, STEP_POINTS_MAX);
    *ret_used = STEP_NONE;
    if (finest != STEP_NONE && plan_coarser(q, finest, window, ret_used) == STORAGE_NOMEM) {
        return STORAGE_NOMEM;
    }
    return err;
}

/* ---- what could be asked for instead ---- */

/* The states by which the partitions tile windows: of those that tile alike only one. */
struct bases {
    struct partition_view *views; /* owned */
    size_t n, capacity;
};

/* Find the bases of all partitions that are asked.  False: no memory. */
static bool find_bases(const struct count_question *q, struct bases *bases)
{
    for (size_t i = 0; i < q->n_portions; i++) {
        struct partition_view view = core_view(q->read.core, q->portions[i].partition);
        size_t at = 0;
        while (at < bases->n && !tile_alike(&bases->views[at], &view)) {
            at++;
        }
        if (at < bases->n) {
            continue;
        }
        if (!array_reserve(&bases->views, &bases->capacity, bases->n, sizeof(*bases->views))) {
            return false;
        }
        bases->views[bases->n++] = view;
    }
    return true;
}

/* The first instant from @at_s on where a bucket may begin by all @bases.  False: nothing is
 * kept. */
static bool next_border(
    const struct count_question *q, const struct bases *bases, int64_t at_s, int64_t *ret_s)
{
    int64_t before_s;
    do {
        before_s = at_s;
        for (size_t i = 0; i < bases->n; i++) {
            struct cover_basis basis = proved_basis(&q->read, &bases->views[i]);
            if (!cover_border(&basis, at_s, &at_s)) {
                return false;
            }
        }
    } while (at_s != before_s);
    *ret_s = at_s;
    return true;
}

/* The latest part of @outer in which each border between two points of @step (not STEP_AUTO) is a
 * border of kept buckets, too, in all partitions that are asked.  @outer as a whole can be tiled.
 * The older a time is, the coarser its buckets are, so the part is everything behind the last
 * border that lies inside a bucket.  False: nothing is left, or @outer has more points than are
 * answered, or no memory. */
static bool kept_part(
    const struct count_question *q, enum step step, struct window outer, struct window *ret)
{
    const struct zone *zone = q->job->zone;
    struct bases bases = {.views = NULL};
    int64_t from_s = outer.from_s;
    if (step_count(zone, step, outer, STEP_POINTS_MAX) > STEP_POINTS_MAX) {
        return false;
    }
    bool is_kept = find_bases(q, &bases);
    for (int64_t at_s = step_end(zone, step, outer.from_s); is_kept && at_s < outer.to_s;
         at_s = step_end(zone, step, at_s)) {
        int64_t border_s = at_s;
        is_kept = next_border(q, &bases, at_s, &border_s);
        from_s = border_s != at_s ? border_s : from_s;
    }
    free(bases.views);
    *ret = (struct window){from_s, outer.to_s};
    return is_kept && from_s < outer.to_s;
}

/* Does the series over *@part work?  If not, *@part loses its first point, and is tried once more.
 * For while the minutes of an hour are given up one after the other, the hour may have no minutes
 * before a border any more, and all minutes behind the border still. */
static bool works_from(struct count_question *q, enum step step, struct window *part)
{
    enum step used;
    if (plan_series(q, *part, &used) == STORAGE_OK) {
        return true;
    }
    part->from_s = step_end(q->job->zone, step, part->from_s);
    return part->from_s < part->to_s && plan_series(q, *part, &used) == STORAGE_OK;
}

/* The longest part of @outer, up to its end, whose series works; from_s == to_s if there is none.
 */
static struct window later_part(struct count_question *q, struct window outer)
{
    struct window part;
    struct window longest = {outer.to_s, outer.to_s};
    bool any = q->job->step == STEP_AUTO;
    enum step last = any ? STEP_MONTH : q->job->step;
    for (enum step step = any ? STEP_MINUTE : q->job->step; step <= last; step++) {
        if (kept_part(q, step, outer, &part) && part.from_s < longest.from_s &&
            works_from(q, step, &part) && part.from_s < longest.from_s) {
            longest = part;
        }
    }
    return longest;
}

/* The window is not kept: note in the job what could be asked for instead.  @outer can be tiled.
 * So offer @outer with the step; or a part of it; or @outer with another step, or with none. */
static enum storage_err offer_series(struct count_question *q, struct window outer)
{
    struct count_job *job = q->job;
    enum step used;
    enum storage_err err = plan_series(q, outer, &used);
    job->used = job->step;
    job->outer_works = err == STORAGE_OK;
    job->asked.answered = outer;
    if (err == STORAGE_OK) {
        return STORAGE_NOT_KEPT;
    }
    if (!is_about_step(err)) {
        return err;
    }
    struct window part = later_part(q, outer);
    if (part.from_s < part.to_s) {
        job->asked.answered = part;
    } else {
        job->used = used;
    }
    return STORAGE_NOT_KEPT;
}

static enum storage_err plan_once(struct count_question *q, struct window *window)
{
    struct count_job *job = q->job;
    enum storage_err err = plan_portions(q, STEP_NONE, *window);
    struct window outer = *window;
    job->used = STEP_NONE;
    job->whole_works = false;
    if (err == STORAGE_NOT_KEPT) {
        if (!widen_all(q, &outer)) {
            job->asked.answered = (struct window){window->from_s, window->from_s};
            return err;
        }
        if (!job->asked.round_outer) {
            job->asked.answered = outer;
            job->outer_works = true;
            return job->step == STEP_NONE ? err : offer_series(q, outer);
        }
        *window = outer;
        err = plan_portions(q, STEP_NONE, outer);
    }
    if (err == STORAGE_OK && job->step != STEP_NONE) {
        job->whole_works = true;
        err = plan_series(q, *window, &job->used);
        bool none = err == STORAGE_TOO_FINE && job->used == STEP_NONE;
        job->asked.answered = none ? later_part(q, *window) : (struct window){0, 0};
    }
    return err;
}

enum storage_err count_plan(struct count_question *q, struct window *window)
{
    struct core *core = q->read.core;
    struct window asked = *window;
    enum storage_err err = plan_once(q, window);
    if (err == STORAGE_TOO_BROAD && q->job->used == STEP_NONE && !plan_lags(core)) {
        *window = asked;
        err = plan_once(q, window);
    }
    return q->job->used == STEP_NONE ? plan_told(core, err) : err;
}
