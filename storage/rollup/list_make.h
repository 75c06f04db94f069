/* list_make.h - reads from Redis what a pass has to merge.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * Each step is a run of list.lua, which looks at the pass and its cursor first.  The list is void
 * as soon as the pass is not ours any more.  Sizes are asked first; then the parts are scanned in
 * pieces, so that no step holds Redis for more than about two milliseconds.
 *
 * Pages are found in a part's hash of views.  Once the bucket is closed for readers, that hash may
 * expire (a late event gives it its expiry), while the sketches of the part's other pages have no
 * expiry yet.  So a part may be gone by now that was there when the bucket was closed.  Then every
 * page of the bucket itself is taken to be in the part: whatever was in the part by then is in the
 * bucket too.
 */
#ifndef STORAGE_ROLLUP_LIST_MAKE_H
#define STORAGE_ROLLUP_LIST_MAKE_H

#include "storage/rollup/leadership.h"
#include "storage/rollup/list.h"

/* Where and for whom a list is made. */
struct rollup_scope {
    struct core *core;
    struct session *session;
    unsigned partition;
    const char *tag; /* its own */
    const struct leadership *leadership;
    const char *pass; /* id, NUL-terminated */
    const char *cur;  /* cursor expected */
    enum level level; /* of the buckets to complete, */
    int64_t end_s;    /* which end here, each in its site's zone */
    bool overdue;     /* take those that ended before too */
    /* Once the bucket is closed for readers, when its parts may be gone; NULL before. */
    const struct retention *retention;
    int64_t closed_ms; /* a time before it was closed, Redis's clock; 0: not known */
};

/* Read a member of the set `open`.  False: it is no bucket of a site. */
bool rollup_open_parse(const struct core *core, struct slice member, struct bucket *ret) MUST_CHECK;

/* Make the list into @ret (zeroed, or used before); with @sites_only without items.
 * rollup_list_release gives it back, in any case. */
enum pass_result rollup_list_make(
    const struct rollup_scope *scope, bool sites_only, struct rollup_list *ret) MUST_CHECK;

#endif
