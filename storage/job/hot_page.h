/* hot_page.h - a page that many clients write or ask for just now.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_HOT_PAGE_H
#define STORAGE_JOB_HOT_PAGE_H

#include "storage/base/slice.h"

/* Rates are averages over the last half minute, or since the process began. */
struct hot_page {
    struct slice site, page; /* point into `text` */
    char *text;              /* owned by the list: see storage_hot_pages() */
    double reads_per_s, writes_per_s;
    double error; /* each of both rates is off by this much at most */
};

#endif
