/* list.h - the sites and pages that the parts of a bucket hold: what a pass has to merge.
 *
 * Layer: storage, pure.  Belongs to the thread that does the pass.
 *
 * A pass completes all buckets of a level that end at one instant: one for each zone in use that
 * has such a bucket.  (The bucket of another zone goes on over that instant, and waits for its own
 * end.)  The parts of a bucket are the buckets of the level below: the minutes of an hour, for
 * example.  list_make.c reads the list from Redis.
 */
#ifndef STORAGE_ROLLUP_LIST_H
#define STORAGE_ROLLUP_LIST_H

#include "storage/base/arena.h"
#include "storage/base/index.h"
#include "storage/schema/key.h"

/* A bucket has so many parts at most: they are bits of rollup_item.parts. */
#define PARTS_MAX 62

/* One bucket to complete, and its parts. */
struct rollup_cut {
    const struct zone *zone;
    struct bucket target;
    struct bucket parts[PARTS_MAX];
    size_t n_parts;
};

struct rollup_site {
    struct slice name;
    uint32_t cut; /* index of its bucket in cuts */
};

/* How an item is merged (rollup/together.h). */
enum rollup_way {
    MERGE_OWN,      /* the item's entry is made of its parts */
    MERGE_ANEW,     /* the same; what the entry held before is forgotten first */
    MERGE_TOGETHER, /* the item loses its entry; its parts are added to what is put together */
};

/* A page of a site, and the parts that have it. */
struct rollup_item {
    uint32_t site;      /* index in sites */
    enum key_kind kind; /* KEY_PV: sketches and views; KEY_VV: visits, beside the visitors */
    enum rollup_way way;
    struct slice page;
    uint64_t parts; /* bit i: part i has the page */
    uint64_t count; /* views or visits in the parts, when they were listed */
};

/* What a pass has to merge.  Zeroed: nothing. */
struct rollup_list {
    struct arena arena;
    struct rollup_site *sites;
    size_t n_sites, sites_capacity;
    struct index site_index;
    struct rollup_cut *cuts; /* owned: the buckets to complete */
    size_t n_cuts, cuts_capacity;
    struct rollup_item *items; /* owned; after rollup_put_together() in its order */
    size_t n_items, items_capacity;
    struct index index;
};

/* The cut of site @site of the list. */
static inline const struct rollup_cut *rollup_cut_of(const struct rollup_list *list, uint32_t site)
{
    return &list->cuts[list->sites[site].cut];
}

/* Forget everything.  Clear keeps the memory for the next list, release frees it. */
void rollup_list_clear(struct rollup_list *list);
void rollup_list_release(struct rollup_list *list);

/* Add a site of @zone with the bucket @target to complete, unless it is there: scans may show a
 * site twice.  The name is copied.  False: out of memory. */
bool rollup_list_add_site(struct rollup_list *list, struct slice site, const struct zone *zone,
    struct bucket target) MUST_CHECK;

/* Add a page that the parts @parts (bits) of a site have, with @count views or visits.  If the page
 * was added before for one of these parts, @count is not added again.  The name is copied.  False:
 * out of memory. */
bool rollup_list_add_item(struct rollup_list *list, uint32_t site, enum key_kind kind,
    struct slice page, uint64_t parts, uint64_t count) MUST_CHECK;

#endif
