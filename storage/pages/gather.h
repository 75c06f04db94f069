/* gather.h - the pages of a bucket as they come, step by step, and what they add up to.
 *
 * Layer: storage, private to pages/scan.c.  Belongs to a reader thread.
 *
 * A scan of a bucket brings its pages in steps, and may bring a page twice.  So what comes of a
 * bucket is gathered in a slot, and added to the sums when the bucket is through: a page that came
 * twice has the greater of its values.
 *
 * The pages of a bucket that is over are not added to the question's sums at once, but to those of
 * the bucket's run (pages/memory.h), which has all pages, also those that are not asked for.  The
 * run's table joins the question's sums when all of the run is read.
 */
#ifndef STORAGE_PAGES_GATHER_H
#define STORAGE_PAGES_GATHER_H

#include "storage/pages/capped.h"
#include "storage/pages/memory.h"
#include "storage/schema/part_set.h"

/* Zeroed: nothing is gathered. */
struct gathering {
    struct proved_read *r;
    struct page_sums *sums;        /* of the question */
    bool chosen;                   /* no other pages than those that are there already */
    struct slice class;            /* names of this class are asked for: see job/counted_name.h */
    struct slice prefix;           /* the names begin with this */
    struct part_set parts;         /* the partitions that are read */
    struct capped_buckets *capped; /* what caps put together of the class */
    struct pages_memory memory;
    size_t n_buckets; /* of the longest cover: foreign data may have a page where it is not */
    size_t n_most;    /* pages that there may be */
    size_t buckets_read;
};

/* A bucket that is being read.  Zeroed: none. */
struct slot {
    bool busy;
    size_t bucket;              /* in the cover */
    struct remembered_run *run; /* to whose own sums it goes; NULL: to those of the question */
    char cursor[REPLY_CURSOR];
    uint64_t other;        /* what a cap put together */
    struct staged *staged; /* owned: what came so far */
    size_t n_staged, staged_capacity;
};

/* Add all runs of which nothing need be read.  STORAGE_NOMEM, STORAGE_TOO_BROAD: more pages than
 * n_most. */
enum storage_err gathering_add_recalled(struct gathering *g);

/* Begin to read @bucket of partition @p's cover. */
void slot_begin(struct gathering *g, unsigned p, struct slot *slot, size_t bucket);

/* Take one step of the slot's bucket; the last one, whose cursor is 0, ends it.  Errors as above,
 * and STORAGE_REFUSED: foreign data. */
enum storage_err slot_take_step(
    struct gathering *g, unsigned p, struct slot *slot, const struct reply *step);

void slot_release(struct slot *slot);

#endif
