/* scan.h - the page views of every page of a site over a planned window.
 *
 * Layer: storage, private to pages/pages.c.  Belongs to a reader thread.
 *
 * What is remembered of closed buckets (pages/memory.h) is taken from there.  The others are first
 * looked at all at once, in one write to Redis: a scan (HSCAN, ZSCAN) that brings all of a small
 * bucket, and the small ones are most.  Those that it brought a part of only are scanned from the
 * start in bounded pieces, some at a time.  What a scan promises is enough: a page that is there
 * all the while comes at least once.  One that comes twice (its table grew meanwhile) must not
 * count twice: so what comes of a bucket is gathered first, and added when the bucket is through.
 * Page views only grow, so any of the values is one that was true after the question was asked.
 */
#ifndef STORAGE_PAGES_SCAN_H
#define STORAGE_PAGES_SCAN_H

#include "storage/pages/sums.h"
#include "storage/read/proved_read.h"

#define PAGES_SCAN_MAX 4000000 /* different pages in one window */

/* Zeroed it is empty. */
struct pages_scan {
    struct page_sums sums; /* `present` numbers the buckets of the page's partition's cover */
    bool chosen;           /* no other pages than those that are there already */
    size_t buckets_read;
};

/* Count only pages that are added before the scan. */
bool pages_scan_choose(struct pages_scan *scan, struct slice site, struct slice page);

/* All pages that begin with @prefix (or were chosen, and do), over the covers that were planned.
 * r->stale: see there. */
enum storage_err pages_scan_run(
    struct pages_scan *scan, struct proved_read *r, struct slice prefix);

void pages_scan_clear(struct pages_scan *scan);
void pages_scan_release(struct pages_scan *scan);

#endif
