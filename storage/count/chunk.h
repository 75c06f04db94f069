/* chunk.h - the covers of all shards, cut into what is read in one MULTI each.
 *
 * Layer: storage, private to count/read.c and count/take.c.  A chunk holds Redis for a moment only;
 * what is recalled (count/recall.h, count/series.h) is passed over, and a shard of which nothing is
 * left to read has an empty chunk all the same, whose reply proves what is recalled.
 *
 * Ownership: counter->chunks is the counter's.  Thread safety: the reader's thread.
 */
#ifndef STORAGE_COUNT_CHUNK_H
#define STORAGE_COUNT_CHUNK_H

#include "storage/count/question.h"

/* Cut the covers into counter->chunks, group by group of points.  False: out of memory. */
bool chunks_cut(struct counter *counter);

/* Does the chunk read @metric (enum metric)? */
bool chunk_has_metric(const struct chunk *chunk, int metric);

/* The bucket of the cover at @i, or the next one that must be read. */
size_t chunk_next_read(const struct shard *shard, size_t i);

/* The point of the cover's bucket @i; @point is that of an earlier one. */
size_t chunk_point_of(const struct shard *shard, size_t i, size_t point);

#endif
