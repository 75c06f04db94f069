/* gather.h - gather the pages of a bucket, which come in steps, and add them up.
 *
 * Layer: storage, private to pages/scan.c.  Belongs to a reader thread.
 *
 * A scan of a bucket brings its pages in steps, and may bring a page twice.  So the pages of a
 * bucket are gathered in a slot, and added to the sums when the scan is through: a page that came
 * twice has the greater of its values.
 *
 * The pages of a bucket that is over are not added to the question's sums at once.  They are added
 * to the sums of the bucket's run (pages/memory.h), which have all pages, also those that are not
 * asked for.  When all of the run is read, its table is added to the question's sums.
 */
#ifndef STORAGE_PAGES_GATHER_H
#define STORAGE_PAGES_GATHER_H

#include "storage/pages/capped.h"
#include "storage/pages/memory.h"
#include "storage/schema/part_set.h"

/* Zeroed: nothing is gathered. */
struct gathering {
    struct proved_read *r;
    struct page_sums *sums;        /* the question's sums */
    bool chosen;                   /* only pages that sums has already are asked for */
    struct slice class;            /* names of this class are asked for: see job/counted_name.h */
    struct slice prefix;           /* the names that are asked for begin with this */
    struct part_set parts;         /* the partitions that are read */
    struct capped_buckets *capped; /* what caps put together of the class */
    struct pages_memory memory;
    /* The number of buckets of the longest cover.  Each page has bits for so many, because foreign
     * data may have the page in another partition than its own. */
    size_t n_buckets;
    size_t n_most; /* sums may have so many pages */
    size_t buckets_read;
};

/* A bucket that is being read.  Zeroed: none. */
struct slot {
    bool busy;
    size_t bucket;              /* its index in the cover */
    struct remembered_run *run; /* the run to whose sums it is added; NULL: to the question's */
    char cursor[REPLY_CURSOR];  /* where the scan goes on */
    uint64_t other;             /* without a run: what a cap put together in the bucket */
    struct staged *staged;      /* owned: the pages that came so far */
    size_t n_staged, staged_capacity;
};

/* Add all runs of which nothing need be read.  Errors: STORAGE_NOMEM; STORAGE_TOO_BROAD if there
 * are more pages than n_most. */
enum storage_err gathering_add_recalled(struct gathering *g);

/* Begin to read @bucket of partition @p's cover. */
void slot_begin(struct gathering *g, unsigned p, struct slot *slot, size_t bucket);

/* Take the reply to one step of the scan of the slot's bucket.  The last step, whose cursor is 0,
 * adds the bucket to the sums.  Errors as above, and STORAGE_REFUSED: foreign data. */
enum storage_err slot_take_step(
    struct gathering *g, unsigned p, struct slot *slot, const struct reply *step);

void slot_release(struct slot *slot);

#endif
