/* overlap.c - how many visitors two pages, or two sets of pages, have in common.
 *
 * Over one window the sketches of both sides are read by one proved reading (read/proved_read.h).
 * With a window for each side there is a reading for each.  sketch/hll_joint.h estimates what the
 * sides have in common.  What caps put together in the partitions of the pages is read as well, and
 * bounds the figures from above. */
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/job/counted_name.h"
#include "storage/pages/sketches.h"
#include "storage/read/listed_keys.h"
#include "storage/read/page_sets.h"
#include "storage/read/window.h"

#define REMEMBERED 32 /* with more pages than these, nothing of closed buckets is remembered */

/* The sketches of an answer: OWN + s is of side s; HIDDEN + s has what caps put together in the
 * partitions of that side's pages. */
enum { OWN = 0, HIDDEN = 2, SKETCHES = 4 };

/* One reading, of one side or of both. */
struct pair {
    struct proved_read r;
    const struct overlap_job *overlap;
    size_t from, to;             /* sides [from, to) are read */
    struct hll *sketches;        /* array of SKETCHES */
    struct sketched_page *pages; /* owned: n_own pages of the sides, then names of others */
    uint8_t *sketch_of;          /* owned: for each page the index of its sketch */
    size_t n_own, n;
};

static void overlap_take(void *data, size_t i, const struct hll *sketch)
{
    struct pair *pair = data;
    hll_unite(&pair->sketches[pair->sketch_of[i]], sketch);
}

static void pair_add(struct pair *pair, struct slice page, unsigned partition, unsigned sketch)
{
    pair->pages[pair->n] = (struct sketched_page){.page = page, .partition = partition};
    pair->sketch_of[pair->n++] = (uint8_t)sketch;
}

/* Add the name of others for page @i: what a cap put together of the page's class in its partition.
 * Several pages of a side may have the same name of others, which is added once. */
static void pair_add_others(struct pair *pair, size_t i)
{
    const struct sketched_page *own = &pair->pages[i];
    struct slice others = counted_name_others(own->page);
    unsigned sketch = HIDDEN + pair->sketch_of[i];
    char mark = counted_name_mark(own->page);
    if (own->page.n == 0 || (mark != '\0' && mark != NAME_MARK_EVENT)) {
        return; /* the whole site has everything; no other class has visitors of others */
    }
    for (size_t k = pair->n_own; k < pair->n; k++) {
        if (pair->sketch_of[k] == sketch && pair->pages[k].partition == own->partition &&
            slice_equal(pair->pages[k].page, others)) {
            return;
        }
    }
    pair_add(pair, others, own->partition, sketch);
}

/* Fill in the pages of the sides.  proved_begin() was called.  False: no memory. */
static bool pair_fill(struct pair *pair)
{
    size_t n = 0;
    for (size_t s = pair->from; s < pair->to; s++) {
        n += pair->overlap->sides[s].n_pages;
    }
    pair->pages = calloc(2 * n + 1, sizeof(*pair->pages));
    pair->sketch_of = calloc(2 * n + 1, 1);
    if (pair->pages == NULL || pair->sketch_of == NULL) {
        return false;
    }
    for (size_t s = pair->from; s < pair->to; s++) {
        const struct overlap_side *side = &pair->overlap->sides[s];
        for (size_t i = 0; i < side->n_pages; i++) {
            struct slice page = side->pages[i];
            pair_add(pair, page, page_partition(&pair->r, page), OWN + (unsigned)s);
        }
    }
    pair->n_own = pair->n;
    for (size_t i = 0; i < pair->n_own; i++) {
        pair_add_others(pair, i);
    }
    for (size_t i = 0; i < pair->n; i++) {
        pair->pages[i].remember = pair->n_own <= REMEMBERED;
    }
    return true;
}

static enum storage_err overlap_count_keys(struct pair *pair)
{
    struct proved_read *r = &pair->r;
    enum storage_err err = STORAGE_OK;
    listed_keys_clear(r);
    for (size_t i = 0; err == STORAGE_OK && i < pair->n_own; i++) {
        const struct slice *page = &pair->pages[i].page;
        unsigned p = pair->pages[i].partition;
        err = listed_keys_add(r, p, KEY_UV, &page, 1, &r->covers[p]);
    }
    listed_keys_sort(r->asked);
    return err;
}

/* Note how many keys the plan has.  Are they too many? */
static bool overlap_too_broad(struct pair *pair)
{
    struct proved_read *r = &pair->r;
    size_t keys = 0;
    size_t page_bytes = 0;
    for (size_t i = 0; i < pair->n_own; i++) {
        size_t n = r->covers[pair->pages[i].partition].n;
        keys += n;
        page_bytes += n * pair->pages[i].page.n;
    }
    r->keys_planned = keys;
    return keys > READS_MAX ||
           (r->asked->explain && (keys > COUNTED_KEYS_MAX || page_bytes > COUNTED_BYTES_MAX));
}

static enum storage_err read_pair(void *data)
{
    struct pair *pair = data;
    struct part_set partitions = {{0}};
    for (size_t i = 0; i < pair->n; i++) {
        part_set_add(&partitions, pair->pages[i].partition);
    }
    for (size_t s = pair->from; s < pair->to; s++) {
        hll_clear(&pair->sketches[OWN + s]);
        hll_clear(&pair->sketches[HIDDEN + s]);
    }
    enum storage_err err = window_plan(&pair->r, &partitions);
    if (err != STORAGE_OK) {
        return err;
    }
    return overlap_too_broad(pair)
               ? STORAGE_TOO_BROAD
               : page_sketches_read(&pair->r, pair->pages, pair->n, overlap_take, pair);
}

/* Find the pages of both sides. */
static enum storage_err overlap_resolve(
    struct reader *reader, struct storage_job *job, struct overlap_job *overlap, bool *ret_lost)
{
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; i < 2 && err == STORAGE_OK; i++) {
        struct overlap_side *side = &overlap->sides[i];
        if (side->set.name.n == 0) {
            side->pages = &side->page; /* the whole site is the page without a name */
            side->n_pages = 1;
        }
        overlap->unknown = i;
        err = page_set_resolve(
            reader, job, &side->set, overlap->asked.site, &side->pages, &side->n_pages, ret_lost);
    }
    return err;
}

/* Read sides [@from, @to) over the window of @asked, into @sketches. */
static enum storage_err overlap_read(struct reader *reader, struct storage_job *job, size_t from,
    size_t to, struct window_question *asked, struct hll *sketches, bool *ret_lost)
{
    struct overlap_job *overlap = &job->u.overlap;
    struct pair pair = {.overlap = overlap, .from = from, .to = to, .sketches = sketches};
    overlap->unknown = from;
    bool begun = proved_begin(&pair.r, reader, job, asked, ret_lost) && pair_fill(&pair);
    enum storage_err err = begun ? proved_attempts(&pair.r, read_pair, &pair) : STORAGE_NOMEM;
    err = err == STORAGE_OK ? overlap_count_keys(&pair) : err;
    proved_end(&pair.r);
    proved_release(&pair.r);
    free(pair.pages);
    free(pair.sketch_of);
    return err;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Bound the figures from above: what they are if everything that caps put together belongs to the
 * sides.  The HIDDEN sketches are overwritten. */
static void bound(struct hll *sketches, const struct hll_joint *is, struct overlap_most *ret)
{
    struct hll_joint most;
    bool capped[2];
    *ret = (struct overlap_most){0};
    for (size_t s = 0; s < 2; s++) {
        capped[s] = hll_estimate(&sketches[HIDDEN + s]) > 0;
        hll_unite(&sketches[HIDDEN + s], &sketches[OWN + s]);
    }
    if (!capped[0] && !capped[1]) {
        return;
    }
    hll_joint_estimate(&sketches[HIDDEN], &sketches[HIDDEN + 1], &most);
    ret->sides[0] = capped[0] ? larger(most.a.value, is->a.value) : 0;
    ret->sides[1] = capped[1] ? larger(most.b.value, is->b.value) : 0;
    ret->either = larger(most.either.value, is->either.value);
    ret->both = larger(most.both.value, is->both.value);
    ret->jaccard = is->either.value > ret->both ? ret->both / is->either.value : 1;
    /* The most visitors are only in a if nothing that was put together belongs to b. */
    hll_joint_estimate(&sketches[HIDDEN], &sketches[OWN + 1], &most);
    ret->only_a = larger(most.only_a.value, is->only_a.value);
}

enum storage_err overlap_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct overlap_job *overlap = &job->u.overlap;
    size_t at_once = overlap->two_windows ? 1 : 2;
    enum storage_err err = overlap_resolve(reader, job, overlap, ret_lost);
    struct hll *sketches = err == STORAGE_OK ? malloc(SKETCHES * sizeof(*sketches)) : NULL;
    if (sketches == NULL) {
        return err == STORAGE_OK ? STORAGE_NOMEM : err;
    }
    err = overlap_read(reader, job, 0, at_once, &overlap->asked, sketches, ret_lost);
    if (err == STORAGE_OK && overlap->two_windows) {
        err = overlap_read(reader, job, 1, 2, &overlap->asked_second, sketches, ret_lost);
    }
    if (err == STORAGE_OK) {
        hll_joint_estimate(&sketches[OWN], &sketches[OWN + 1], &overlap->joint);
        bound(sketches, &overlap->joint, &overlap->most);
        atomic_fetch_add(&reader->core->stats.queries, 1);
    }
    free(sketches);
    return err;
}
