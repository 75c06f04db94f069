#include "storage/overlap.h"

#include <stdlib.h>

#include "storage/page_sketch.h"

struct pair {
    struct hll sketches[2];
};

static void take_sketch(void *data, size_t i, const struct hll *sketch)
{
    struct pair *pair = data;
    pair->sketches[i] = *sketch;
}

static enum storage_err count_keys(struct window_read *w, const struct overlap_job *overlap)
{
    for (size_t i = 0; i < 2; i++) {
        unsigned p = page_partition(w, overlap->pages[i]);
        for (size_t b = 0; b < w->covers[p].n; b++) {
            struct key key;
            key_bucket(&key, w->core->partitions.tag[p], KEY_UV, w->asked->site,
                w->covers[p].buckets[b], overlap->pages[i]);
            if (!window_count_key(w, &key, w->covers[p].buckets[b])) {
                return STORAGE_NOMEM;
            }
        }
    }
    window_sort_keys(w->asked);
    return STORAGE_OK;
}

/* Until a plan has held. */
static enum storage_err read_pair(
    struct window_read *w, const struct overlap_job *overlap, struct pair *pair)
{
    uint64_t partitions = UINT64_C(1) << page_partition(w, overlap->pages[0]) |
                          UINT64_C(1) << page_partition(w, overlap->pages[1]);
    struct sketched_page pages[2] = {{overlap->pages[0], NULL}, {overlap->pages[1], NULL}};
    while (monotonic_ms() < w->job->deadline_ms) {
        enum storage_err err = window_plan(w, partitions);
        if (err == STORAGE_OK) {
            err = page_sketches_read(w, pages, 2, take_sketch, pair);
        }
        if (err != STORAGE_OK || (!w->stale && !window_moved_on(w))) {
            return err;
        }
        atomic_fetch_add(&w->core->stats.query_replans, 1);
    }
    return STORAGE_LATE;
}

enum storage_err overlap_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct overlap_job *overlap = &job->u.overlap;
    struct window_read w;
    struct pair *pair = malloc(sizeof(*pair));
    bool begun = window_begin(&w, reader, job, &overlap->asked, ret_lost);
    enum storage_err err = begun && pair != NULL ? STORAGE_OK : STORAGE_NOMEM;
    window_clear_keys(&overlap->asked);
    err = err == STORAGE_OK ? read_pair(&w, overlap, pair) : err;
    err = err == STORAGE_OK ? count_keys(&w, overlap) : err;
    if (err == STORAGE_OK) {
        hll_joint_estimate(&pair->sketches[0], &pair->sketches[1], &overlap->joint);
        atomic_fetch_add(&reader->core->stats.queries, 1);
    }
    window_end(&w);
    free(pair);
    return err;
}
