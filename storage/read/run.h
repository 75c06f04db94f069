/* run.h - neighbouring buckets of a plan that are over, and are remembered as one.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * A bucket that is over changes seldom, and Redis keeps an id that is new after every such change:
 * the bucket's proof, a field of the partition's `state`.  What was read is remembered together
 * with that id, and is taken again as long as Redis says the same id (storage/read/README.md).
 *
 * The unit of what is remembered is a run: neighbouring buckets of one level that have the same
 * field for their proof.  A plan has at most eight or so: minutes, hours, days, months, days,
 * hours, minutes, and the minutes of the open hour.  So 12 KB are kept at most instead of 12 KB a
 * bucket; and when a window moves on with the minutes, all runs but those at its edges stay the
 * same.
 */
#ifndef STORAGE_READ_RUN_H
#define STORAGE_READ_RUN_H

#include "storage/base/buffer.h"
#include "storage/read/cache.h"
#include "storage/schema/key.h"
#include "storage/schema/partition_state.h"
#include "storage/time/cover.h"

/* Which field of `state` tells of every change to a bucket. */
enum proof {
    PROOF_NONE, /* an open bucket has none */
    PROOF_VER,  /* of a bucket closed for readers, and of the minutes of such an hour */
    PROOF_OVER, /* of minutes of an open hour that are over */
    PROOF_FOLD, /* of all minutes of an open hour, until something is counted */
    N_PROOFS
};

/* The proof of @bucket from now on, by @view; never PROOF_FOLD. */
enum proof proof_of(
    const struct zone *zone, const struct partition_view *view, struct bucket bucket);

/* What the field says in @view; n 0: nothing, with PROOF_NONE or an empty partition. */
const struct ver *proof_ver(const struct partition_view *view, enum proof proof);

/* Will the next reply, at @now_ms (CLOCK_MONOTONIC), likely have the same?  `over` changes each
 * minute, and where late events are common with each write; `fold` with each write.  Then recalling
 * is no use. */
#define FOLD_STEADY_MS 200 /* folds are half a second apart, or come with the question */
bool proof_is_steady(const struct partition_view *view, enum proof proof, int64_t now_ms);

/* Do all of @proofs, a set of bits 1 << enum proof, say the same in both views? */
bool proofs_same(
    unsigned proofs, const struct partition_view *planned, const struct partition_view *now);

/* Buckets [first, first + n) of a cover. */
struct remembered_run {
    size_t first, n;
    enum proof proof; /* by the plan */
    bool recalled;    /* what the buckets come to is there: they need not be read */
    size_t text;      /* where, for the caller: n_text bytes */
    size_t n_text;
};

/* Zeroed: none. */
struct remembered_runs {
    struct remembered_run *all; /* owned; in time order, disjoint */
    size_t n, capacity;
};

void runs_release(struct remembered_runs *runs);

/* Append a run.  NULL: no memory. */
struct remembered_run *runs_add(struct remembered_runs *runs, struct remembered_run run);

/* Append the runs among buckets [first, end) of @cover, by @view.  A gap between buckets ends a
 * run.  @open: minutes of open hours are in runs, too.  False: no memory. */
bool runs_find(struct remembered_runs *runs, const struct zone *zone,
    const struct partition_view *view, const struct cover *cover, size_t first, size_t end,
    bool open);

/* The one of @n runs in time order that bucket @i is in; NULL: none. */
struct remembered_run *run_at(struct remembered_run *runs, size_t n, size_t i);

/* Bucket @i, or behind recalled runs the next one that must be read. */
size_t runs_next_unread(const struct remembered_runs *runs, size_t i);

/* Do all buckets of @run have the run's proof, by @view?  PROOF_FOLD goes for any minute. */
bool run_holds(const struct remembered_run *run, const struct zone *zone,
    const struct partition_view *view, const struct cover *cover);

/* In place of a partition: what several of them have.  Each use has numbers of its own, so that no
 * two kinds of values have one name. */
enum {
    RUN_OF_SERIES = PARTITIONS_MAX, /* count/series.c: points of a series */
    RUN_OF_WHOLE,                   /* count/whole.c: buckets, the sum over all partitions */
    RUN_OF_TABLES,                  /* pages/memory.c: what each one has, in one value */
    RUN_OF_PARTS, /* count/recall.c: the same, and behind it a number for each set of metrics */
};

/* A name for what keys of @kind have of @pages in @partition; of no pages: of all of them, each for
 * itself.
 * @scratch is overwritten.  Without memory for it: a name that nothing has. */
struct cache_id run_name(const struct cache *cache, struct buffer *scratch, unsigned partition,
    enum key_kind kind, struct slice site, const struct slice *const *pages, size_t n_pages);

/* The name of what the buckets of @run have of @name.  A site's zone stays the same as long as this
 * process runs, so the id need not tell it. */
struct cache_id run_id(const struct cache *cache, const struct cache_id *name,
    const struct cover *cover, const struct remembered_run *run);

#endif
