/* kept_parts.h - what several partitions have of a run, remembered in one value.
 *
 * Layer: storage.  Belongs to a reader thread; all threads share the cache (read/cache.h).
 *
 * A question about all pages, or all visitors, of a site reads each run in each partition.  A value
 * of the cache takes 80 bytes beside what it holds, and most partitions have less than 80 bytes of
 * a short run.  So there is one value for a run, with a part for each partition:
 *
 *     head (proof, partition, bytes)   part   head   part   ..
 *
 * Each part has its own proof, a hash of the id under which it was read.  After a late event in one
 * partition the parts of the others are still true, and only that partition is read.
 */
#ifndef STORAGE_READ_KEPT_PARTS_H
#define STORAGE_READ_KEPT_PARTS_H

#include "storage/read/proved_read.h"

/* The parts of one run. */
struct kept_run {
    struct bucket first; /* the run begins with this bucket */
    int64_t end_s;       /* the run ends here, UTC */
    struct cache_id id;  /* of the value in the cache */
    struct buffer parts; /* the value */
    uint32_t *at;        /* owned: where in parts each partition's part begins; 0: no part */
    bool changed;        /* parts is not what the cache has */
    bool holes;          /* some parts were replaced: their bytes are still in parts */
};

struct kept_parts {
    struct proved_read *r;
    size_t most;                /* a longer value, in bytes, is not remembered */
    size_t room;                /* so many bytes may still be put */
    struct cache_id name;       /* what all runs are of: run_name() in read/run.h */
    struct kept_run **all;      /* owned */
    size_t n, capacity, likely; /* likely: the number in all of the run that is asked for next */
};

/* Begin with parts of @name; r->core has a cache.  A value takes at most @most bytes, and all parts
 * that are put take at most @room.  kept_parts_release() must follow; a zeroed struct may be
 * released, too. */
void kept_parts_begin(struct kept_parts *parts, struct proved_read *r, struct cache_id name,
    size_t most, size_t room);
void kept_parts_release(struct kept_parts *parts);

/* The run with the part that @partition has of @run, of @cover, if that part is remembered and
 * likely holds.  As with proved_recall() the next reply must prove the part.  NULL: the partition
 * must be read. */
const struct kept_run *kept_parts_recall(struct kept_parts *parts, unsigned partition,
    const struct cover *cover, const struct remembered_run *run);

/* The part of @partition, which must be there.  It lives until the next kept_parts_put(). */
struct slice kept_run_part(const struct kept_run *kept, unsigned partition);

/* Set @part, which is all that @partition has of @run and was just read, in place of an older part.
 * Nothing is set without room, or memory, or one proof that stands for all of the part.  False:
 * there is no such proof. */
bool kept_parts_put(struct kept_parts *parts, unsigned partition, const struct cover *cover,
    const struct remembered_run *run, struct slice part);

/* Put each run that has new parts into the cache, together with its older parts. */
void kept_parts_keep(struct kept_parts *parts);

#endif
