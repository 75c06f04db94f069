/* seen_job.h - did this user view that page before?
 *
 * Layer: storage, public: plain values.
 *
 * Storage remembers pairs of a user and a page, month by month, in Bloom filters.  So "no" is
 * certain, and "yes" is wrong at a small rate.  How the pairs lie in Redis: seen/layout.h.
 */
#ifndef STORAGE_JOB_SEEN_JOB_H
#define STORAGE_JOB_SEEN_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/window_job.h"

/* The bounds of seen_config.keep_s. */
#define SEEN_KEEP_MIN_S 86400
#define SEEN_KEEP_MAX_S (400 * INT64_C(86400))

/* How storage remembers the pairs. */
struct seen_config {
    bool on;           /* remember the pairs of events with a user */
    uint64_t capacity; /* pairs of a site and month that fit before its filters grow */
    double error;      /* the rate at which a "yes" is wrong, over all months that are kept */
    int64_t keep_s;    /* a month is kept for so long after its end */
};

/* Input and result of STORAGE_SEEN: did `user` view any of the pages, or which of them, in the
 * months that are kept?  There must be a page or a set. */
struct seen_job {
    struct slice site, user;
    const struct slice *pages; /* the caller's; storage adds those of the set */
    size_t n_pages;
    struct page_set_ref set;
    /* Another name under which a view of @page may have been counted, or @page.  It lives as long
     * as the page, or as `names`. */
    struct slice (*other_name)(const void *names, struct slice page);
    const void *names;

    /* Written by storage. */
    bool seen;              /* the user viewed one of the pages; false is certain */
    bool *each;             /* the caller's, n_pages: which pages; NULL: only `seen` is asked for */
    double false_positives; /* the rate at which a "yes", of each or of any, is wrong: expected from
                               the content */
};

#endif
