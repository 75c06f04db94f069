#include "storage/count/join.h"

#include <stdlib.h>
#include <string.h>

#include "storage/schema/partition.h"

/* What the two functions below know.  A member that belongs to the question and is not compared
 * would give one question the answer to another; one of the answer that is not copied would be
 * lost. */

static bool same_pages(const struct slice *a, const struct slice *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!slice_equal(a[i], b[i])) {
            return false;
        }
    }
    return true;
}

static bool count_same(const struct storage_job *a, const struct storage_job *b)
{
    const struct count_job *x = &a->u.count;
    const struct count_job *y = &b->u.count;
    if (x->metric != y->metric || x->all_metrics != y->all_metrics || x->step != y->step ||
        (x->step != STEP_NONE && x->zone != y->zone) ||
        x->asked.window.from_s != y->asked.window.from_s ||
        x->asked.window.to_s != y->asked.window.to_s || x->asked.to_is_now != y->asked.to_is_now ||
        x->asked.round_outer != y->asked.round_outer || x->asked.explain || y->asked.explain ||
        x->set.name.n > 0 || y->set.name.n > 0 || x->n_pages != y->n_pages ||
        !slice_equal(x->asked.site, y->asked.site)) {
        return false;
    }
    return same_pages(x->pages, y->pages, x->n_pages);
}

static bool count_share(const struct storage_job *from, struct storage_job *to)
{
    struct count_point *points = NULL;
    if (from->u.count.points != NULL) {
        points = malloc(from->u.count.n_points * sizeof(*points));
        if (points == NULL) {
            return false;
        }
        memcpy(points, from->u.count.points, from->u.count.n_points * sizeof(*points));
    }
    to->u.count.points = points;
    to->u.count.n_points = from->u.count.n_points;
    to->u.count.used = from->u.count.used;
    to->u.count.value = from->u.count.value;
    memcpy(to->u.count.values, from->u.count.values, sizeof(to->u.count.values));
    to->u.count.asked.answered = from->u.count.asked.answered;
    to->u.count.outer_works = from->u.count.outer_works;
    to->u.count.whole_works = from->u.count.whole_works;
    memcpy(to->u.count.asked.per_level, from->u.count.asked.per_level,
        sizeof(to->u.count.asked.per_level));
    return true;
}

static bool pages_same(const struct pages_job *x, const struct pages_job *y)
{
    const struct window_question *a = &x->asked;
    const struct window_question *b = &y->asked;
    return x->by_uv == y->by_uv && x->limit == y->limit && slice_equal(x->prefix, y->prefix) &&
           x->set.name.n == 0 && y->set.name.n == 0 && x->n_pages == y->n_pages &&
           same_pages(x->pages, y->pages, x->n_pages) && slice_equal(a->site, b->site) &&
           a->window.from_s == b->window.from_s && a->window.to_s == b->window.to_s &&
           a->to_is_now == b->to_is_now && a->round_outer == b->round_outer && !a->explain &&
           !b->explain;
}

static bool pages_share(const struct pages_job *from, struct pages_job *to)
{
    to->rows = arena_alloc(&to->arena, (from->n_rows + 1) * sizeof(*to->rows));
    to->n_rows = 0;
    for (size_t i = 0; to->rows != NULL && i < from->n_rows; i++) {
        char *copy = arena_alloc(&to->arena, from->rows[i].page.n + 1);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, from->rows[i].page.p, from->rows[i].page.n);
        to->rows[i] = from->rows[i];
        to->rows[i].page.p = copy;
        to->n_rows = i + 1;
    }
    to->total = from->total;
    to->clamped = from->clamped;
    to->asked.answered = from->asked.answered;
    memcpy(to->asked.per_level, from->asked.per_level, sizeof(to->asked.per_level));
    return to->rows != NULL;
}

bool question_same(const struct storage_job *a, const struct storage_job *b)
{
    if (a->op != b->op) {
        return false;
    }
    return a->op == STORAGE_COUNT   ? count_same(a, b)
           : a->op == STORAGE_PAGES ? pages_same(&a->u.pages, &b->u.pages)
                                    : false;
}

bool question_share(const struct storage_job *from, struct storage_job *to)
{
    memcpy(to->detail, from->detail, sizeof(to->detail));
    return from->op == STORAGE_COUNT ? count_share(from, to)
                                     : pages_share(&from->u.pages, &to->u.pages);
}

uint64_t question_hash(const struct storage_job *job)
{
    bool pages = job->op == STORAGE_PAGES;
    if (!pages && job->op != STORAGE_COUNT) {
        return 0;
    }
    const struct count_job *count = &job->u.count;
    struct slice site = pages ? job->u.pages.asked.site : count->asked.site;
    struct window window = pages ? job->u.pages.asked.window : count->asked.window;
    const struct slice *first = pages ? job->u.pages.pages : count->pages;
    size_t n_pages = pages ? job->u.pages.n_pages : count->n_pages;
    uint64_t what =
        pages ? 100 + job->u.pages.limit * 2 + job->u.pages.by_uv
              : (uint64_t)count->metric * 32 + (uint64_t)count->step * 2 + count->all_metrics;
    uint64_t hash = page_hash(site, n_pages > 0 ? first[0] : SLICE(""));
    uint64_t words[] = {(uint64_t)window.from_s, (uint64_t)window.to_s, what, n_pages};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash | 1;
}
