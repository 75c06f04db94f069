/* hot_page.h - a page that many write or ask for just now.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_HOT_PAGE_H
#define STORAGE_JOB_HOT_PAGE_H

#include "storage/base/slice.h"

struct hot_page {
    struct slice site, page; /* into `text` */
    char *text;              /* owned */
    double reads_per_s, writes_per_s;
    double error; /* of each of both */
};

#endif
