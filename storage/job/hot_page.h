/* hot_page.h - a page that many clients write or ask for just now.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_HOT_PAGE_H
#define STORAGE_JOB_HOT_PAGE_H

#include <stddef.h>

#include "storage/base/slice.h"

/* A page and its rates: averages over the last half minute, or over the life of the process that
 * counted, if that is shorter. */
struct hot_page {
    struct slice site, page; /* point into `text` */
    char *text;              /* owned by the list */
    double reads_per_s, writes_per_s;
    double error; /* each of the two rates is off by this much at most */
};

/* The most that either rate of the page can be. */
static inline double hot_page_most(const struct hot_page *page)
{
    double most = page->reads_per_s > page->writes_per_s ? page->reads_per_s : page->writes_per_s;
    return most + page->error;
}

/* Result of STORAGE_HOT_PAGES: the hottest pages of all processes, by the sum of both rates.  With
 * any error but STORAGE_NOMEM the list is that of this process alone.  storage_job_release() frees
 * it. */
struct hot_pages_job {
    struct hot_page *pages;
    size_t n;
    double absent; /* private to storage: see hot_pages_list() */
};

/* Order a list: the greatest sum of rates first; pages that tie are in order of their names. */
void hot_pages_sort(struct hot_page *pages, size_t n);

/* Free a list; NULL is harmless. */
void hot_pages_release(struct hot_page *pages, size_t n);

#endif
