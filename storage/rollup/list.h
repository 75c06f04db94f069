/* list.h - the sites and pages that the parts of a bucket hold: what a pass has to merge.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 *
 * A pass completes all buckets of a level that end at one instant: of each zone in use that has
 * one, that bucket.  (Another zone's bucket goes on over that instant, and waits for its own end.)
 * The parts of a bucket are the buckets of the level below: the minutes of an hour, for example.
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
#ifndef STORAGE_ROLLUP_LIST_H
#define STORAGE_ROLLUP_LIST_H

#include "storage/base/arena.h"
#include "storage/base/index.h"
#include "storage/rollup/leadership.h"
#include "storage/schema/key.h"

/* Minutes of an hour, hours of a day, days of a month; they are bits of rollup_item.parts. */
#define PARTS_MAX 62

/* One bucket to complete and its parts, of one zone. */
struct rollup_cut {
    const struct zone *zone;
    struct bucket target;
    struct bucket parts[PARTS_MAX];
    size_t n_parts;
};

struct rollup_site {
    struct slice name;
    uint32_t cut; /* number of the cut of its zone */
};

/* How an item is merged (rollup/together.h). */
enum rollup_way {
    MERGE_OWN,      /* its entry is made of its parts */
    MERGE_ANEW,     /* the same; what its entry held before is forgotten first */
    MERGE_TOGETHER, /* it loses its entry, and its parts are added to what is put together */
};

/* A page of a site, and the parts that have it. */
struct rollup_item {
    uint32_t site;
    enum key_kind kind; /* KEY_PV: sketches and views; KEY_VV: visits, with the visitors */
    enum rollup_way way;
    struct slice page;
    uint64_t parts; /* bit i: it is in part i */
    uint64_t count; /* views or visits in the parts, when they were listed */
};

struct rollup_list {
    struct arena arena;
    struct rollup_site *sites;
    size_t n_sites, sites_capacity;
    struct index site_index;
    struct rollup_cut *cuts; /* of the sites' zones */
    size_t n_cuts, cuts_capacity;
    struct rollup_item *items; /* grouped by site and kind, those of a group by way */
    size_t n_items, items_capacity;
    struct index index;
};

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

/* The cut of a site of the list. */
static inline const struct rollup_cut *rollup_cut_of(const struct rollup_list *list, uint32_t site)
{
    return &list->cuts[list->sites[site].cut];
}

/* Make the list into @ret (zeroed, or used before); with @sites_only without items.
 * rollup_list_release gives it back, in any case. */
enum pass_result rollup_list_make(
    const struct rollup_scope *scope, bool sites_only, struct rollup_list *ret) MUST_CHECK;
void rollup_list_release(struct rollup_list *list);

#endif
