/* run.h - neighbouring buckets of a plan that are over, and are remembered as one.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * A bucket that is over changes seldom, and Redis keeps an id that is new after every such change:
 * the bucket's proof, a field of the partition's `state`.  What was read of a bucket is remembered
 * together with that id, and is taken again while Redis has the same id (storage/read/README.md).
 *
 * The unit of what is remembered is a run: neighbouring buckets of one level that have the same
 * field for their proof.  A plan has at most eight runs or so: minutes, hours, days, months, days,
 * hours, minutes, and the minutes of the open hour.  So a sketch, of at most 12 KB, is kept for a
 * run, not for each bucket; and when a window moves on with the minutes, all runs but those at its
 * edges stay the same.
 */
#ifndef STORAGE_READ_RUN_H
#define STORAGE_READ_RUN_H

#include "storage/base/buffer.h"
#include "storage/read/cache.h"
#include "storage/schema/key.h"
#include "storage/schema/partition_state.h"
#include "storage/time/cover.h"

/* Which field of `state` is new after every change to a bucket. */
enum proof {
    PROOF_NONE, /* none is: the bucket is open */
    PROOF_VER,  /* the bucket is closed for readers, or is a minute of such an hour */
    PROOF_OVER, /* the bucket is a minute of an open hour, and is over */
    PROOF_FOLD, /* any minute of an open hour: the id is new when anything is counted */
    N_PROOFS
};

/* The proof of @bucket, by @view; never PROOF_FOLD. */
enum proof proof_of(
    const struct zone *zone, const struct partition_view *view, struct bucket bucket);

/* The id that @view has in the field @proof.  n is 0 with PROOF_NONE, and for a partition that is
 * empty or was not seen yet. */
const struct ver *proof_ver(const struct partition_view *view, enum proof proof);

/* Will the next reply, at @now_ms (CLOCK_MONOTONIC), likely have the same id?  If not, to recall is
 * of no use.  `over` changes each minute, and with each fold where late events are common; `fold`
 * changes with each fold. */
#define FOLD_STEADY_MS 200 /* folds are half a second apart, or come with the question */
bool proof_is_steady(const struct partition_view *view, enum proof proof, int64_t now_ms);

/* Have all fields of @proofs, a set of bits 1 << enum proof, the same ids in both views? */
bool proofs_same(
    unsigned proofs, const struct partition_view *planned, const struct partition_view *now);

/* Buckets [first, first + n) of a cover. */
struct remembered_run {
    size_t first, n;
    enum proof proof; /* by the view of the plan */
    bool recalled;    /* what the buckets come to was remembered: they need not be read */
    size_t text;      /* for the caller: where the recalled value begins in the caller's buffer */
    size_t n_text;    /* bytes of that value */
};

/* Some runs of a cover.  Zeroed: none. */
struct remembered_runs {
    struct remembered_run *all; /* owned; in time order, disjoint */
    size_t n, capacity;
};

void runs_release(struct remembered_runs *runs);

/* Append a run.  The result is valid until the next one is appended.  NULL: no memory. */
struct remembered_run *runs_add(struct remembered_runs *runs, struct remembered_run run);

/* Append the runs among buckets [first, end) of @cover, by @view.  A gap between buckets ends a
 * run.  @open: minutes of open hours that are not over are in runs of PROOF_FOLD.  False: no
 * memory. */
bool runs_find(struct remembered_runs *runs, const struct zone *zone,
    const struct partition_view *view, const struct cover *cover, size_t first, size_t end,
    bool open);

/* The run, among @n runs in time order, that has bucket @i of the cover; NULL: none has. */
struct remembered_run *run_at(struct remembered_run *runs, size_t n, size_t i);

/* The first bucket from @i on that must be read, as it is in no recalled run. */
size_t runs_next_unread(const struct remembered_runs *runs, size_t i);

/* Do all buckets of @run, of @cover, have the run's proof, by @view?  PROOF_FOLD is a proof of any
 * minute. */
bool run_holds(const struct remembered_run *run, const struct zone *zone,
    const struct partition_view *view, const struct cover *cover);

/* Numbers that stand in place of a partition where a value is of several partitions.  Each use has
 * its own numbers, so that no two kinds of values have one name. */
enum {
    RUN_OF_SERIES = PARTITIONS_MAX, /* count/series.c: points of a series */
    RUN_OF_WHOLE,                   /* count/whole.c: buckets, each summed over all partitions */
    RUN_OF_TABLES,                  /* pages/memory.c: a table of each partition, in one value */
    RUN_OF_PARTS, /* count/read.c: this number, and those behind it, for each set of metrics */
};

/* The name of what keys of @kind have of @pages in @partition.  Without pages: of all pages, each
 * for itself.  @scratch is overwritten.  Without memory for it the name is random: no value has it.
 */
struct cache_id run_name(const struct cache *cache, struct buffer *scratch, unsigned partition,
    enum key_kind kind, struct slice site, const struct slice *const *pages, size_t n_pages);

/* The name of what the buckets of @run, of @cover, have of @name.  A site's zone stays the same as
 * long as this process runs, so it need not be in the name.
 *
 * Each minute a window that ends now has other runs of minutes: the last ones begin or end
 * elsewhere in their hour, and so do the first ones.  Such runs replace each other. */
struct cache_id run_id(const struct cache *cache, const struct cache_id *name,
    const struct cover *cover, const struct remembered_run *run);

#endif
