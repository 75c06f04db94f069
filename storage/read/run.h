/* run.h - neighbouring buckets of a cover that are over, and their name in what is
 * remembered.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * A run is what is remembered as one (ARCHITECTURE.md, "Remembering what is over"): neighbouring
 * buckets of one level for which one field of the partition's `rolled` tells of every change.  A
 * cover has at most eight or so.
 */
#ifndef STORAGE_READ_RUN_H
#define STORAGE_READ_RUN_H

#include "storage/base/buffer.h"
#include "storage/core/core.h"
#include "storage/read/cache.h"
#include "storage/schema/key.h"
#include "storage/time/cover.h"

/* Which field. */
enum proof {
    PROOF_NONE, /* an open bucket: none */
    PROOF_VER,  /* of a bucket closed for readers, and of the minutes of such an hour */
    PROOF_OVER, /* of minutes of an open hour that are over */
};

/* What tells of every change to @bucket from now on, by @view? */
enum proof closed_proof(
    const struct zone *zone, const struct partition_view *view, struct bucket bucket);

/* What it is now; n 0: nothing, with PROOF_NONE or an empty partition. */
const struct ver *closed_ver(const struct partition_view *view, enum proof proof);

/* cache_get() of what has that proof; and only if it is likely to be the same in the next reply:
 * `over` changes each minute, and where late events are common with each write, and it is no use to
 * recall what would have to be read after all. */
bool closed_recall(struct cache *cache, const struct cache_id *id,
    const struct partition_view *view, enum proof proof,
    void (*use)(void *data, const void *value, size_t n), void *data);

/* Sets of proofs: bits 1 << enum proof.  Are all of @proofs the same in both views? */
bool closed_same(
    unsigned proofs, const struct partition_view *planned, const struct partition_view *now);

/* The first bucket behind the run that begins at bucket @i of @cover, and ends before @end; @i: it
 * is in none.  (There may be gaps between buckets: a run has none.) */
size_t closed_run_end(const struct zone *zone, const struct partition_view *view,
    const struct cover *cover, size_t i, size_t end);

/* Are buckets [first, first + n) of @cover, which were read, by @view all proved by @proof? */
bool closed_run_holds(const struct zone *zone, const struct partition_view *view, enum proof proof,
    const struct cover *cover, size_t first, size_t n);

/* A name for what keys of @kind have of @pages (of no pages: of all of them, each for itself) in
 * @partition, or of several partitions, then any number from PARTITIONS_MAX on.  @scratch is
 * overwritten; if it then has `failed`, the name is of no use. */
struct cache_id closed_name(const struct cache *cache, struct buffer *scratch, unsigned partition,
    enum key_kind kind, struct slice site, const struct slice *const *pages, size_t n_pages);

/* The name of what buckets [first, first + n) of @cover have of it. */
struct cache_id closed_run_id(const struct cache *cache, const struct cache_id *name,
    const struct cover *cover, size_t first, size_t n);

#endif
