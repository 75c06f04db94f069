/* sketches.h - read the visitors of many pages over a planned window, one sketch a page.
 *
 * Layer: storage, private to pages/.  Belongs to a reader thread.
 *
 * Pages are read one after the other, some hundred keys ahead.  The sketches of a page's buckets
 * are united; buckets that the page is known not to be in are passed over.  What closed buckets
 * come to is remembered as runs (read/run.h), under the same names as for a question about the
 * visitors of that page.
 */
#ifndef STORAGE_PAGES_SKETCHES_H
#define STORAGE_PAGES_SKETCHES_H

#include "storage/read/proved_read.h"
#include "storage/sketch/hll.h"

/* Called for each page, in order, with its index @i.  @sketch lives until the function returns. */
typedef void page_sketch_fn(void *data, size_t i, const struct hll *sketch);

struct sketched_page {
    struct slice page;
    unsigned partition;     /* page_partition(); of a name of others the partition that is meant */
    const uint8_t *present; /* bit i & 7 of byte i / 8: the page is in bucket i of its partition's
                               cover; NULL: not known, so all buckets are read */
    bool remember; /* remember closed buckets, as the page is likely asked for again and again */
};

/* Read the sketches of @n pages over r->covers, and have @take look at the sketch of each page.  If
 * r->stale, @take was possibly not called for all pages. */
enum storage_err page_sketches_read(struct proved_read *r, const struct sketched_page *pages,
    size_t n, page_sketch_fn *take, void *data);

/* The partition in which a page of the question's site lies. */
unsigned page_partition(const struct proved_read *r, struct slice page);

#endif
