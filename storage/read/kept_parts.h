/* kept_parts.h - what several partitions have of a run, remembered in one value.
 *
 * Layer: storage.  Belongs to a reader thread; what is remembered is shared (read/cache.h).
 *
 * A question about all pages, or all visitors, of a site reads each run in each partition.  A value
 * of the cache takes 80 bytes beside what it holds, and most partitions have less than that of a
 * short run.  So the value is the run's, and has a part for each partition:
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
    struct cache_id id;
    struct buffer parts;
    uint32_t *at; /* owned: where in parts each partition's part begins; 0: there is none */
    bool changed; /* it is not remembered like this */
    bool holes;   /* some parts were replaced */
};

struct kept_parts {
    struct proved_read *r;
    size_t most;                /* bytes of one value */
    size_t room;                /* so many bytes may still be put */
    struct cache_id name;       /* of all of them: read/run.h */
    struct kept_run **all;      /* owned */
    size_t n, capacity, likely; /* the one that is likely asked for next */
};

/* Begin with parts of @name; r->core has a cache.  A value takes at most @most bytes, and all that
 * is put @room.  Release in any case; zeroed there is nothing to release. */
void kept_parts_begin(struct kept_parts *parts, struct proved_read *r, struct cache_id name,
    size_t most, size_t room);
void kept_parts_release(struct kept_parts *parts);

/* If the part that @partition has of @run, of @cover, is remembered and likely holds, what has it.
 * As with proved_recall() the next reply must prove it.  NULL: it must be read. */
const struct kept_run *kept_parts_recall(struct kept_parts *parts, unsigned partition,
    const struct cover *cover, const struct remembered_run *run);

/* That part.  It lives until the next kept_parts_put(). */
struct slice kept_run_part(const struct kept_run *kept, unsigned partition);

/* All that @partition has of @run was read: @part.  Set it, in place of an older one, if one proof
 * stands for all of it and there is room.  False: there is no such proof. */
bool kept_parts_put(struct kept_parts *parts, unsigned partition, const struct cover *cover,
    const struct remembered_run *run, struct slice part);

/* Remember all parts that are new, beside those that were there. */
void kept_parts_keep(struct kept_parts *parts);

#endif
