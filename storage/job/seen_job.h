/* seen_job.h - did this user view that page before?
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_SEEN_JOB_H
#define STORAGE_JOB_SEEN_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/job/window_job.h"

/* A month may be kept between these times after its end. */
#define SEEN_KEEP_MIN_S 86400
#define SEEN_KEEP_MAX_S (400 * INT64_C(86400))

/* Who saw what: see seen/layout.h. */
struct seen_config {
    bool on;           /* events with a user feed it */
    uint64_t capacity; /* pairs of user and page that a site has in a month before it grows */
    double error;      /* rate of false yeses, over all months that are kept */
    int64_t keep_s;    /* a month is kept so long after its end */
};

/* Input and result of STORAGE_SEEN: did @user view one of @pages, or of @set, as far as is
 * remembered? */
struct seen_job {
    struct slice site, user;
    const struct slice *pages; /* storage adds the set's */
    size_t n_pages;
    struct page_set_ref set;
    bool seen;              /* false is certain */
    double false_positives; /* rate at which a yes is wrong, expected from what is in */
};

#endif
