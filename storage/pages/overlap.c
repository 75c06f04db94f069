/* overlap.c - how many visitors two pages, or two sets of pages, have in common over a window.
 *
 * The sketches of both sides are read by one proved reading (read/proved_read.h); the estimate of
 * what they have in common is sketch/hll_joint.h. */
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/pages/sketches.h"
#include "storage/read/listed_keys.h"
#include "storage/read/page_sets.h"

#define REMEMBERED 32 /* pages, at most, whose closed buckets are remembered */

struct pair {
    struct hll sketches[2];
    size_t n_first; /* pages of the first side */
    size_t n;
    struct sketched_page pages[]; /* of the first side, then of the second */
};

static void take_sketch(void *data, size_t i, const struct hll *sketch)
{
    struct pair *pair = data;
    hll_unite(&pair->sketches[i < pair->n_first ? 0 : 1], sketch);
}

/* The pages of both sides; NULL: no memory. */
static struct pair *pair_of(const struct overlap_job *overlap)
{
    size_t n[2] = {overlap->sides[0].n_pages, overlap->sides[1].n_pages};
    struct pair *pair = malloc(sizeof(*pair) + (n[0] + n[1]) * sizeof(pair->pages[0]));
    if (pair == NULL) {
        return NULL;
    }
    pair->n_first = n[0];
    pair->n = n[0] + n[1];
    for (size_t i = 0; i < pair->n; i++) {
        const struct overlap_side *side = &overlap->sides[i < n[0] ? 0 : 1];
        pair->pages[i] = (struct sketched_page){
            side->pages[i < n[0] ? i : i - n[0]], NULL, pair->n <= REMEMBERED};
    }
    return pair;
}

static enum storage_err count_keys(struct window_read *w, const struct pair *pair)
{
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; i < pair->n; i++) {
        struct slice page = pair->pages[i].page;
        unsigned p = page_partition(w, page);
        for (size_t b = 0; err == STORAGE_OK && b < w->covers[p].n; b++) {
            err = window_count_key(w, p, KEY_UV, page, w->covers[p].buckets[b]);
        }
    }
    window_sort_keys(w->asked);
    return err;
}

static bool too_broad(const struct window_read *w, const struct pair *pair)
{
    size_t keys = 0;
    size_t page_bytes = 0;
    for (size_t i = 0; i < pair->n; i++) {
        size_t n = w->covers[page_partition(w, pair->pages[i].page)].n;
        keys += n;
        page_bytes += n * pair->pages[i].page.n;
    }
    return keys > WINDOW_READS_MAX ||
           (w->asked->explain && (keys > COUNTED_KEYS_MAX || page_bytes > COUNTED_BYTES_MAX));
}

/* Until a plan has held. */
static enum storage_err read_pair(struct window_read *w, struct pair *pair)
{
    uint64_t partitions = 0;
    for (size_t i = 0; i < pair->n; i++) {
        partitions |= UINT64_C(1) << page_partition(w, pair->pages[i].page);
    }
    for (unsigned tries = 0; monotonic_ms() < w->job->deadline_ms; tries++) {
        w->forgetful = tries >= WINDOW_RECALLS;
        hll_clear(&pair->sketches[0]);
        hll_clear(&pair->sketches[1]);
        enum storage_err err = window_plan(w, partitions);
        if (err == STORAGE_OK && too_broad(w, pair)) {
            return STORAGE_TOO_BROAD;
        }
        if (err == STORAGE_OK) {
            err = page_sketches_read(w, pair->pages, pair->n, take_sketch, pair);
        }
        if (err != STORAGE_OK || (!w->stale && !window_moved_on(w))) {
            return err;
        }
        atomic_fetch_add(&w->core->stats.query_replans, 1);
    }
    return STORAGE_LATE;
}

/* The pages of both sides. */
static enum storage_err resolve(
    struct reader *reader, struct storage_job *job, struct overlap_job *overlap, bool *ret_lost)
{
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; i < 2 && err == STORAGE_OK; i++) {
        struct overlap_side *side = &overlap->sides[i];
        if (side->set.name.n == 0) {
            side->pages = &side->page;
            side->n_pages = 1;
        }
        overlap->unknown = i;
        err = page_set_resolve(
            reader, job, &side->set, overlap->asked.site, &side->pages, &side->n_pages, ret_lost);
    }
    return err;
}

enum storage_err overlap_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct overlap_job *overlap = &job->u.overlap;
    struct window_read w;
    enum storage_err err = resolve(reader, job, overlap, ret_lost);
    if (err != STORAGE_OK) {
        return err;
    }
    struct pair *pair = pair_of(overlap);
    bool begun = window_begin(&w, reader, job, &overlap->asked, ret_lost);
    err = begun && pair != NULL ? STORAGE_OK : STORAGE_NOMEM;
    window_clear_keys(&w);
    err = err == STORAGE_OK ? read_pair(&w, pair) : err;
    err = err == STORAGE_OK ? count_keys(&w, pair) : err;
    if (err == STORAGE_OK) {
        hll_joint_estimate(&pair->sketches[0], &pair->sketches[1], &overlap->joint);
        atomic_fetch_add(&reader->core->stats.queries, 1);
    }
    window_end(&w);
    free(pair);
    return err;
}
