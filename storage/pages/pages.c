/* pages.c - the top pages of a window, by page views, by visitors or by visits that began there.
 *
 * Page views, and visits, are summed up for every page (pages/scan.h), so their order is exact.
 *
 * For the order by visitors, pages are walked in the order of their page views, and the sketches of
 * some pages at a time are read.  A page has no more visitors than page views.  So the walk ends
 * where the next page has fewer page views than the last of the first n pages has visitors: no page
 * behind that one can be among the first n.  If the two numbers are equal, the name decides, and
 * pages with as many page views are walked in the order of their names, too.  An estimate can be
 * above the page views all the same.  It is cut to them, so the rule holds for what is answered. */
#include "storage/read/answers.h"
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/job/counted_name.h"
#include "storage/pages/scan.h"
#include "storage/pages/sketches.h"
#include "storage/read/listed_keys.h"
#include "storage/read/page_sets.h"
#include "storage/read/repeat.h"
#include "storage/read/window.h"

#define BATCH      64 /* pages whose sketches are read at once */
#define REMEMBERED 32 /* first pages whose visitors in closed buckets are remembered */

/* What the work for one job needs. */
struct ranking {
    struct proved_read read;
    struct pages_scan scan;
    struct pages_job *job;
    struct page_row
        *rows; /* owned: the first job->limit rows so far, and behind them those being read */
    size_t n_rows, rows_capacity;
};

static int by_views(const void *a, const void *b)
{
    const struct page_sum *x = a;
    const struct page_sum *y = b;
    return x->pv != y->pv ? (x->pv < y->pv ? 1 : -1) : slice_compare(x->page, y->page);
}

static int by_visitors(const void *a, const void *b)
{
    const struct page_row *x = a;
    const struct page_row *y = b;
    return x->uv != y->uv ? (x->uv < y->uv ? 1 : -1) : slice_compare(x->page, y->page);
}

/* ---- visitors ---- */

/* Can the page of @sum, or one behind it in the order of page views, be among the first? */
static bool may_be_among(const struct ranking *r, const struct page_sum *sum)
{
    struct page_row best = {.page = sum->page, .pv = sum->pv, .uv = sum->pv};
    return !r->job->by_uv || r->n_rows < r->job->limit ||
           by_visitors(&best, &r->rows[r->n_rows - 1]) < 0;
}

static void rank_sketch(void *data, size_t i, const struct hll *sketch)
{
    struct ranking *r = data;
    (void)i;
    struct page_row *row = &r->rows[r->n_rows++];
    row->uv = hll_estimate(sketch);
    if (row->uv > row->pv) {
        row->uv = row->pv;
        r->job->clamped = true;
    }
}

/* The row of a sum, but for its visitors. */
static struct page_row row_of(const struct ranking *r, const struct page_sum *sum)
{
    uint64_t hidden = 0;
    if (r->job->entries) { /* a page is in many partitions, so all that caps put together may be */
        hidden = capped_buckets_pv(&r->scan.capped);
    } else if (r->scan.capped.n > 0) {
        unsigned p = page_partition(&r->read, sum->page);
        hidden = capped_buckets_hide(&r->scan.capped, sum, p, &r->read.covers[p], r->read.zone);
    }
    return (struct page_row){.page = sum->page, .pv = sum->pv, .at_most = sum->pv + hidden};
}

/* Keep the first rows, by visitors, of those that were read. */
static void rank_rows(struct ranking *r)
{
    if (r->n_rows > 0) { /* qsort takes no array of none */
        qsort(r->rows, r->n_rows, sizeof(*r->rows), by_visitors);
    }
    r->n_rows = r->n_rows < r->job->limit ? r->n_rows : r->job->limit;
}

/* Read the visitors of sums [first, first + n), and append their rows. */
static enum storage_err read_batch(struct ranking *r, size_t first, size_t n)
{
    struct sketched_page pages[BATCH];
    for (size_t i = 0; i < n; i++) {
        if (!array_reserve(&r->rows, &r->rows_capacity, r->n_rows + i, sizeof(*r->rows))) {
            return STORAGE_NOMEM;
        }
        const struct page_sum *sum = &r->scan.sums.all[first + i];
        pages[i] = (struct sketched_page){
            sum->page, page_partition(&r->read, sum->page), sum->present, first + i < REMEMBERED};
        r->rows[r->n_rows + i] = row_of(r, sum);
    }
    return page_sketches_read(&r->read, pages, n, rank_sketch, r);
}

static enum storage_err read_visitors(struct ranking *r)
{
    enum storage_err err = STORAGE_OK;
    size_t last = r->job->by_uv ? (size_t)r->job->total
                                : (r->job->limit < r->job->total ? r->job->limit : r->job->total);
    r->n_rows = 0;
    r->job->clamped = false;
    for (size_t i = 0; err == STORAGE_OK && !r->read.stale && i < last;) {
        if (!may_be_among(r, &r->scan.sums.all[i])) {
            break;
        }
        size_t n = last - i < BATCH ? last - i : BATCH;
        err = read_batch(r, i, n);
        i += n;
        if (r->job->by_uv) {
            rank_rows(r);
        }
    }
    return err;
}

/* Make the rows of a question that does not ask for visitors. */
static enum storage_err take_views(struct ranking *r)
{
    r->n_rows = 0;
    r->job->clamped = false;
    for (size_t i = 0; i < r->job->total && i < r->job->limit; i++) {
        if (!ARRAY_RESERVE(r, rows)) {
            return STORAGE_NOMEM;
        }
        r->rows[r->n_rows++] = row_of(r, &r->scan.sums.all[i]);
    }
    return STORAGE_OK;
}

/* ---- all ---- */

static enum storage_err choose_pages(struct ranking *r)
{
    pages_scan_clear(&r->scan);
    for (size_t i = 0; i < r->job->n_pages; i++) {
        if (!pages_scan_choose(&r->scan, r->job->asked.site, r->job->pages[i])) {
            return STORAGE_NOMEM;
        }
    }
    return STORAGE_OK;
}

/* Add the partitions where names that are wanted can be. */
static void add_partitions(const struct ranking *r, struct scan_wanted *wanted)
{
    const struct partitions *partitions = &r->read.core->partitions;
    bool visits = wanted->kind == KEY_VV;
    if (!visits && counted_name_at_site(wanted->class)) {
        part_set_add(&wanted->parts, page_partition(&r->read, wanted->class));
        return;
    }
    for (unsigned p = 0; p < partitions->n; p++) {
        if (!visits || partition_has_visitors(partitions, p)) {
            part_set_add(&wanted->parts, p);
        }
    }
}

static enum storage_err rank_pages(void *data)
{
    struct ranking *r = data;
    struct scan_wanted wanted = {.kind = r->job->entries ? KEY_VV : KEY_PV,
        .class = r->job->class,
        .prefix = r->job->prefix};
    add_partitions(r, &wanted);
    enum storage_err err = window_plan(&r->read, &wanted.parts);
    err = err == STORAGE_OK ? choose_pages(r) : err;
    err = err == STORAGE_OK ? pages_scan_run(&r->scan, &r->read, &wanted) : err;
    if (err != STORAGE_OK || !proved_holds(&r->read)) {
        return err;
    }
    struct page_sums *sums = &r->scan.sums;
    if (sums->n > 0) { /* qsort takes no array of none */
        qsort(sums->all, sums->n, sizeof(*sums->all), by_views);
    }
    r->job->total = r->job->total_pv = 0;
    while (r->job->total < sums->n && sums->all[r->job->total].pv > 0) {
        r->job->total_pv += sums->all[r->job->total++].pv;
    }
    r->job->other_pv = capped_buckets_pv(&r->scan.capped);
    return r->job->without_uv ? take_views(r) : read_visitors(r);
}

/* Copy the rows, with their names, into memory of the job.  False: no memory. */
static bool copy_rows(const struct page_row *rows, size_t n, struct pages_job *ret)
{
    ret->n_rows = 0;
    ret->rows = arena_alloc(&ret->arena, (n + 1) * sizeof(*ret->rows));
    for (size_t i = 0; ret->rows != NULL && i < n; i++) {
        ret->rows[i] = rows[i];
        if (!arena_copy(&ret->arena, &ret->rows[i].page)) {
            return false;
        }
        ret->n_rows = i + 1;
    }
    return ret->rows != NULL;
}

/* Put the rows into the job, with copies of their names, because the job outlives the scan. */
static enum storage_err pages_conclude(struct ranking *r)
{
    struct pages_job *job = r->job;
    if (!copy_rows(r->rows, r->n_rows, job)) {
        return STORAGE_NOMEM;
    }
    listed_keys_sort(&job->asked);
    atomic_fetch_add(&r->read.core->stats.queries, 1);
    atomic_fetch_add(&r->read.core->stats.query_keys, (int64_t)r->scan.buckets_read);
    return STORAGE_OK;
}

enum storage_err pages_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct pages_job *pages = &job->u.pages;
    struct ranking *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return STORAGE_NOMEM;
    }
    r->job = pages;
    arena_clear(&pages->arena);
    enum storage_err err = page_set_resolve(
        reader, job, &pages->set, pages->asked.site, &pages->pages, &pages->n_pages, ret_lost);
    if (!proved_begin(&r->read, reader, job, &pages->asked, ret_lost)) {
        err = STORAGE_NOMEM;
    }
    err = err == STORAGE_OK ? proved_attempts(&r->read, rank_pages, r) : err;
    err = err == STORAGE_OK ? pages_conclude(r) : err;
    proved_end(&r->read);
    proved_release(&r->read);
    pages_scan_release(&r->scan);
    free(r->rows);
    free(r);
    return err;
}

/* ---- questions that are the same ---- */

bool pages_same(const struct storage_job *a, const struct storage_job *b)
{
    const struct pages_job *x = &a->u.pages;
    const struct pages_job *y = &b->u.pages;
    return window_question_same(&x->asked, &y->asked) && x->by_uv == y->by_uv &&
           x->limit == y->limit && slice_equal(x->class, y->class) &&
           slice_equal(x->prefix, y->prefix) && x->without_uv == y->without_uv &&
           x->entries == y->entries && x->set.name.n == 0 && y->set.name.n == 0 &&
           same_pages(x->pages, x->n_pages, y->pages, y->n_pages);
}

uint64_t pages_hash(const struct storage_job *job)
{
    const struct pages_job *pages = &job->u.pages;
    return question_hash(
        &pages->asked, pages->pages, pages->n_pages, 100 + pages->limit * 2 + pages->by_uv);
}

bool pages_share(const struct storage_job *from, struct storage_job *to)
{
    const struct pages_job *answer = &from->u.pages;
    struct pages_job own = to->u.pages;
    to->u.pages = *answer; /* below follows what belongs to the job itself */
    to->u.pages.asked.site = own.asked.site;
    to->u.pages.asked.keys = NULL;
    to->u.pages.asked.n_keys = 0;
    to->u.pages.pages = own.pages;
    to->u.pages.set = own.set;
    to->u.pages.class = own.class;
    to->u.pages.prefix = own.prefix;
    to->u.pages.arena = own.arena;
    return copy_rows(answer->rows, answer->n_rows, &to->u.pages);
}

bool pages_own(const struct storage_job *from, struct storage_job *to, struct arena *arena)
{
    struct pages_job *pages = &to->u.pages;
    *pages = from->u.pages;
    pages->arena = (struct arena){.blocks = NULL};
    pages->rows = NULL;
    pages->n_rows = 0;
    pages->asked.keys = NULL;
    pages->asked.n_keys = 0;
    pages->set = (struct page_set_ref){.resolved = NULL};
    return !pages->asked.explain && from->u.pages.set.name.n == 0 &&
           from->u.pages.n_rows <= ANSWER_ROWS && arena_copy(arena, &pages->asked.site) &&
           arena_copy(arena, &pages->class) && arena_copy(arena, &pages->prefix) &&
           answers_own_list(arena, &pages->pages, pages->n_pages);
}
