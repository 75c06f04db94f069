/* page_sketch.h - the visitors of pages over a planned window, one sketch a page.
 *
 * Layer: storage, private to the operations of reader.c.  Belongs to a reader thread.
 */
#ifndef STORAGE_PAGE_SKETCH_H
#define STORAGE_PAGE_SKETCH_H

#include "storage/hll.h"
#include "storage/window_read.h"

/* Called for each page, in order.  @sketch is the caller's until it returns. */
typedef void page_sketch_fn(void *data, size_t i, const struct hll *sketch);

/* Read the sketches of @n pages of w's site over the covers of their partitions, which were
 * planned.  w->stale: @take may have been called with less than all. */
enum storage_err page_sketches_read(
    struct window_read *w, const struct slice *pages, size_t n, page_sketch_fn *take, void *data);

/* The partition of a page of w's site. */
unsigned page_partition(const struct window_read *w, struct slice page);

#endif
