/* closed_run.h - neighbouring buckets of a cover that are over, and their name in what is
 * remembered.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * A run is what is remembered as one (ARCHITECTURE.md, "Remembering what is over"): neighbouring
 * buckets of one level, all of them closed for readers (minutes: of a closed hour), so that the
 * partition's `ver` tells of every change to them.  A cover has at most seven or so.
 */
#ifndef STORAGE_CLOSED_RUN_H
#define STORAGE_CLOSED_RUN_H

#include "storage/buffer.h"
#include "storage/cache.h"
#include "storage/cover.h"
#include "storage/key.h"

/* Does `ver` tell of every change to @bucket from now on? */
bool closed_provable(
    const struct zone *zone, const struct rollup_state *state, struct bucket bucket);

/* The first bucket behind the run that begins at bucket @i of @cover, and ends before @end; @i: it
 * is in none.  (There may be gaps between buckets: a run has none.) */
size_t closed_run_end(const struct zone *zone, const struct rollup_state *state,
    const struct cover *cover, size_t i, size_t end);

/* A name for what keys of @kind have of @pages (of no pages: of all of them, each for itself) in
 * @partition, or of several partitions, then any number from PARTITIONS_MAX on.  @scratch is
 * overwritten; if it then has `failed`, the name is of no use. */
struct cache_id closed_name(const struct cache *cache, struct buffer *scratch, unsigned partition,
    enum key_kind kind, struct slice site, const struct slice *const *pages, size_t n_pages);

/* The name of what buckets [first, first + n) of @cover have of it. */
struct cache_id closed_run_id(const struct cache *cache, const struct cache_id *name,
    const struct cover *cover, size_t first, size_t n);

#endif
