/* sketches.h - the visitors of many pages over a planned window, one sketch a page.
 *
 * Layer: storage, private to pages/.  Belongs to a reader thread.
 *
 * Pages are read one behind the other, some hundred keys ahead.  Of each page the sketches of its
 * buckets are united; buckets that the page is known not to be in are passed over.  What closed
 * buckets come to is remembered as runs (read/run.h), the same as those of a question for the
 * visitors of that page.
 */
#ifndef STORAGE_PAGES_SKETCHES_H
#define STORAGE_PAGES_SKETCHES_H

#include "storage/read/proved_read.h"
#include "storage/sketch/hll.h"

/* Called for each page, in order, with its number.  @sketch lives until the function returns. */
typedef void page_sketch_fn(void *data, size_t i, const struct hll *sketch);

struct sketched_page {
    struct slice page;
    unsigned partition;     /* that it lies in: page_partition(), but for what a cap put together */
    const uint8_t *present; /* bit i & 7 of byte i / 8: it is in bucket i of its partition's cover;
                               NULL: not known, all are read */
    bool remember; /* what closed buckets come to: for pages that are asked for again and again */
};

/* Read the sketches of @n pages over r->covers, and have @take look at each page's.  r->stale:
 * @take may have been called with less than all. */
enum storage_err page_sketches_read(struct proved_read *r, const struct sketched_page *pages,
    size_t n, page_sketch_fn *take, void *data);

/* The partition of a page of the site that is asked for. */
unsigned page_partition(const struct proved_read *r, struct slice page);

#endif
