/* recall.h - what a plan need not read, because it was read before and nothing has changed
 * since.
 *
 * Layer: storage, private to count.c and count_*.c.  Belongs to a reader thread; what is
 * remembered is shared (cache.h).
 *
 * The unit is a run (read/run.h) with the pages that are asked for.  A plan has at most eight or
 * so: minutes, hours, days, months, days, hours, minutes, and those of the open hour.  What is kept
 * is their union, or sum: 12 KB at most instead of 12 KB a bucket, one merge instead of dozens; and
 * when a window moves on with the minutes, all but its edges stay the same.  Of a series, whose
 * points would each have edges of their own, only the first and the last point have runs; the
 * others are in count/series.h.  A site's zone is the same as long as this process runs, so what is
 * remembered need not name it.
 *
 * The partition's `rolled` is read for every question all the same, in the same MULTI as what is
 * not remembered, and the answer is taken only if its `ver` (`over`) is the one that the runs were
 * read with.  Closed for readers, not for writers only: closing a bucket for readers sets a new
 * `ver`, so of two states with the same `ver` both have it closed, also where Redis went back in
 * time between them.
 */
#ifndef STORAGE_COUNT_RECALL_H
#define STORAGE_COUNT_RECALL_H

#include "storage/count/question.h"

/* Find the runs of all planned shards, and take what is remembered of them under the proofs that
 * they were planned by into c->tally.  Where nothing may be remembered (no cache, no memory) there
 * are none.  What several metrics are asked of is recalled in all of them or not at all. */
void count_recall(struct counter *c, const struct count_job *job);

/* The same of the buckets [first, end) of one shard, which belong to @point, behind the runs that
 * it has.  False: no memory, c->tally is of no use. */
bool count_recall_runs(struct counter *c, const struct count_job *job, struct shard *shard,
    size_t first, size_t end, size_t point);

/* A name for what is asked of @pages (owned elsewhere) in @partition, or of several ones, then any
 * number from PARTITIONS_MAX on. */
struct cache_id count_id(struct counter *c, const struct count_job *job, unsigned partition,
    enum metric metric, const struct slice *const *pages, size_t n_pages);

/* The run that bucket @i of the shard's cover belongs to; NULL: none. */
struct run *count_run_at(const struct shard *shard, size_t i);

/* All of @run's buckets were read into c->run or c->run_sum, the last ones in a reply with @view:
 * take them into c->tally, and remember them if one proof holds for all.  False: no memory. */
bool count_remember(struct counter *c, enum metric metric, const struct run *run,
    const struct partition_view *view, const struct shard *shard);

#endif
