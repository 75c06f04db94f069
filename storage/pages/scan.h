/* scan.h - sum up the page views of every page of a site, or the visits, over a planned window.
 *
 * Layer: storage, private to pages/pages.c.  Belongs to a reader thread.
 *
 * The page views of a bucket lie in one hash (a minute) or one sorted set, an entry a page.  So do
 * the visits that began with each page, in each partition of visitors.
 *
 *   remembered buckets   their tables are added up (pages/memory.h)
 *   all other buckets    are looked at in one write to Redis: an HSCAN or ZSCAN each, which brings
 *                        all of a small bucket.  Most buckets are small
 *   large buckets        are scanned again from the start in bounded pieces, some at a time
 *
 * Redis promises that a scan brings a page at least once if the page is there all the while.  A
 * page may come twice, if the table has grown meanwhile, and must not count twice.  So the pages of
 * a bucket are gathered first, and added when the bucket is through.  Page views only grow, so each
 * of the two values was true at some time after the question was asked.
 */
#ifndef STORAGE_PAGES_SCAN_H
#define STORAGE_PAGES_SCAN_H

#include "storage/pages/capped.h"
#include "storage/pages/sums.h"
#include "storage/read/proved_read.h"
#include "storage/schema/part_set.h"

#define PAGES_SCAN_MAX 4000000 /* a window may have so many different pages */

/* Zeroed: no page. */
struct pages_scan {
    struct page_sums sums;        /* `present` numbers the buckets in the cover of the page's
                                  partition.  For visits, of many partitions, it is of no use */
    struct capped_buckets capped; /* what caps put together of the class */
    bool chosen;                  /* only pages that sums has already are counted */
    size_t buckets_read;
};

/* What is scanned. */
struct scan_wanted {
    enum key_kind kind;         /* KEY_PV: page views; KEY_VV: visits */
    struct slice class, prefix; /* names of this class (job/counted_name.h) that begin so */
    struct part_set parts;      /* the partitions where such names may be */
};

/* Before the scan: choose @page.  Only pages that were chosen are counted.  False: no memory. */
bool pages_scan_choose(struct pages_scan *scan, struct slice site, struct slice page);

/* Sum up the names that are @wanted over r->covers, which must be planned.  STORAGE_TOO_BROAD:
 * there are more than PAGES_SCAN_MAX names, or more than fit into memory together with the bits for
 * their buckets.  If r->stale, the sums are of no use. */
enum storage_err pages_scan_run(
    struct pages_scan *scan, struct proved_read *r, const struct scan_wanted *wanted);

/* Forget all pages; clear keeps memory, release frees it. */
void pages_scan_clear(struct pages_scan *scan);
void pages_scan_release(struct pages_scan *scan);

#endif
