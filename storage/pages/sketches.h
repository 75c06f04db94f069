/* sketches.h - the visitors of pages over a planned window, one sketch a page.
 *
 * Layer: storage, private to the operations of readers.c.  Belongs to a reader thread.
 */
#ifndef STORAGE_PAGES_SKETCHES_H
#define STORAGE_PAGES_SKETCHES_H

#include "storage/read/proved_read.h"
#include "storage/sketch/hll.h"

/* Called for each page, in order.  @sketch is the caller's until it returns. */
typedef void page_sketch_fn(void *data, size_t i, const struct hll *sketch);

/* A page, and in which buckets of its partition's cover it is known to have been: bit i & 7 of byte
 * i / 8 (NULL: not known, all are read). */
struct sketched_page {
    struct slice page;
    const uint8_t *present;
    bool remember; /* what closed buckets come to: for pages that are asked for again and again */
};

/* Read the sketches of @n pages of r's site over the covers of their partitions, which were
 * planned.  What is remembered of them (read/run.h), by questions for their visitors too, is not
 * read.  r->stale: @take may have been called with less than all. */
enum storage_err page_sketches_read(struct proved_read *r, const struct sketched_page *pages,
    size_t n, page_sketch_fn *take, void *data);

/* The partition of a page of r's site. */
unsigned page_partition(const struct proved_read *r, struct slice page);

#endif
