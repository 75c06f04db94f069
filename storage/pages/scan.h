/* scan.h - the page views of every page of a site, or its visits, over a planned window.
 *
 * Layer: storage, private to pages/pages.c.  Belongs to a reader thread.
 *
 * The page views of a bucket lie in one hash (a minute) or one sorted set, an entry a page.  So do
 * the visits that began with each page, in each partition of visitors.
 *
 *   buckets that are remembered   their tables are added up (pages/memory.h)
 *   the others, first             all are looked at in one write to Redis: an HSCAN or ZSCAN each,
 *                                 which brings all of a small bucket.  Most buckets are small
 *   those that were larger        are scanned from the start in bounded pieces, some at a time
 *
 * A scan of Redis promises that a page that is there all the while comes at least once.  A page may
 * come twice, where the table grew meanwhile, and must not count twice.  So what comes of a bucket
 * is gathered first, and added when the bucket is through.  Page views only grow, so any of the
 * values is one that was true after the question was asked.
 */
#ifndef STORAGE_PAGES_SCAN_H
#define STORAGE_PAGES_SCAN_H

#include "storage/pages/capped.h"
#include "storage/pages/sums.h"
#include "storage/read/proved_read.h"
#include "storage/schema/part_set.h"

#define PAGES_SCAN_MAX 4000000 /* different pages in one window */

/* Zeroed: no page. */
struct pages_scan {
    struct page_sums sums;        /* `present` numbers the buckets of the page's partition's cover;
                                  of visits it is of no use, a page being in many partitions */
    struct capped_buckets capped; /* what caps put together of the class */
    bool chosen;                  /* no other pages than those that are there already */
    size_t buckets_read;
};

/* What is scanned. */
struct scan_wanted {
    enum key_kind kind;         /* KEY_PV: page views; KEY_VV: visits */
    struct slice class, prefix; /* names of a class that begin so: see job/counted_name.h */
    struct part_set parts;      /* the partitions where they may be */
};

/* Count only pages that are added so, before the scan.  False: no memory. */
bool pages_scan_choose(struct pages_scan *scan, struct slice site, struct slice page);

/* Sum up the names that are @wanted, over r->covers.  STORAGE_TOO_BROAD: there are
 * more than PAGES_SCAN_MAX, or more than fit into memory with the buckets that they are in.
 * r->stale: the sums are of no use. */
enum storage_err pages_scan_run(
    struct pages_scan *scan, struct proved_read *r, const struct scan_wanted *wanted);

void pages_scan_clear(struct pages_scan *scan);
void pages_scan_release(struct pages_scan *scan);

#endif
