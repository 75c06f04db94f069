/* overlap.c - how many visitors two pages, or two sets of pages, have in common.
 *
 * Over one window the sketches of both sides are read by one proved reading (read/proved_read.h).
 * With a window for each side there is a reading for each.  The estimate of what the sides have in
 * common is sketch/hll_joint.h. */
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/pages/sketches.h"
#include "storage/read/listed_keys.h"
#include "storage/read/page_sets.h"
#include "storage/read/window.h"

#define REMEMBERED 32 /* pages, at most, whose closed buckets are remembered */

struct pair {
    struct proved_read r;
    struct hll sketches[2];
    size_t n_first; /* pages of the first side */
    size_t n;
    struct sketched_page pages[]; /* of the first side, then of the second */
};

static void overlap_take(void *data, size_t i, const struct hll *sketch)
{
    struct pair *pair = data;
    hll_unite(&pair->sketches[i < pair->n_first ? 0 : 1], sketch);
}

/* The pages of sides [@from, @to); NULL: no memory. */
static struct pair *pair_of(const struct overlap_job *overlap, size_t from, size_t to)
{
    size_t n[2] = {
        from == 0 ? overlap->sides[0].n_pages : 0, to == 2 ? overlap->sides[1].n_pages : 0};
    struct pair *pair = malloc(sizeof(*pair) + (n[0] + n[1]) * sizeof(pair->pages[0]));
    if (pair == NULL) {
        return NULL;
    }
    pair->r = (struct proved_read){0};
    pair->n_first = n[0];
    pair->n = n[0] + n[1];
    for (size_t i = 0; i < pair->n; i++) {
        const struct overlap_side *side = &overlap->sides[i < n[0] ? 0 : 1];
        pair->pages[i] = (struct sketched_page){
            side->pages[i < n[0] ? i : i - n[0]], NULL, pair->n <= REMEMBERED};
    }
    return pair;
}

static enum storage_err overlap_count_keys(struct pair *pair)
{
    struct proved_read *r = &pair->r;
    enum storage_err err = STORAGE_OK;
    window_clear_keys(r);
    for (size_t i = 0; err == STORAGE_OK && i < pair->n; i++) {
        const struct slice *page = &pair->pages[i].page;
        unsigned p = page_partition(r, *page);
        err = window_count_keys(r, p, KEY_UV, &page, 1, &r->covers[p]);
    }
    window_sort_keys(r->asked);
    return err;
}

static bool overlap_too_broad(const struct pair *pair)
{
    const struct proved_read *r = &pair->r;
    size_t keys = 0;
    size_t page_bytes = 0;
    for (size_t i = 0; i < pair->n; i++) {
        size_t n = r->covers[page_partition(r, pair->pages[i].page)].n;
        keys += n;
        page_bytes += n * pair->pages[i].page.n;
    }
    return keys > READS_MAX ||
           (r->asked->explain && (keys > COUNTED_KEYS_MAX || page_bytes > COUNTED_BYTES_MAX));
}

static enum storage_err read_pair(void *data)
{
    struct pair *pair = data;
    struct part_set partitions = {{0}};
    for (size_t i = 0; i < pair->n; i++) {
        part_set_add(&partitions, page_partition(&pair->r, pair->pages[i].page));
    }
    hll_clear(&pair->sketches[0]);
    hll_clear(&pair->sketches[1]);
    enum storage_err err = window_plan(&pair->r, &partitions);
    if (err != STORAGE_OK) {
        return err;
    }
    return overlap_too_broad(pair)
               ? STORAGE_TOO_BROAD
               : page_sketches_read(&pair->r, pair->pages, pair->n, overlap_take, pair);
}

/* The pages of both sides. */
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

/* Read sides [@from, @to) over the window of @asked, into sketches of the same numbers. */
static enum storage_err overlap_read(struct reader *reader, struct storage_job *job, size_t from,
    size_t to, struct window_question *asked, struct hll sketches[2], bool *ret_lost)
{
    struct overlap_job *overlap = &job->u.overlap;
    struct pair *pair = pair_of(overlap, from, to);
    if (pair == NULL) {
        return STORAGE_NOMEM;
    }
    overlap->unknown = from;
    bool begun = proved_begin(&pair->r, reader, job, asked, ret_lost);
    enum storage_err err = begun ? proved_attempts(&pair->r, read_pair, pair) : STORAGE_NOMEM;
    err = err == STORAGE_OK ? overlap_count_keys(pair) : err;
    for (size_t i = from; err == STORAGE_OK && i < to; i++) {
        sketches[i] = pair->sketches[i];
    }
    proved_end(&pair->r);
    proved_release(&pair->r);
    free(pair);
    return err;
}

enum storage_err overlap_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct overlap_job *overlap = &job->u.overlap;
    size_t at_once = overlap->two_windows ? 1 : 2;
    enum storage_err err = overlap_resolve(reader, job, overlap, ret_lost);
    struct hll *sketches = err == STORAGE_OK ? malloc(2 * sizeof(*sketches)) : NULL;
    if (sketches == NULL) {
        return err == STORAGE_OK ? STORAGE_NOMEM : err;
    }
    err = overlap_read(reader, job, 0, at_once, &overlap->asked, sketches, ret_lost);
    if (err == STORAGE_OK && overlap->two_windows) {
        err = overlap_read(reader, job, 1, 2, &overlap->asked_b, sketches, ret_lost);
    }
    if (err == STORAGE_OK) {
        hll_joint_estimate(&sketches[0], &sketches[1], &overlap->joint);
        atomic_fetch_add(&reader->core->stats.queries, 1);
    }
    free(sketches);
    return err;
}
