#include "storage/rollup/list.h"

#include <stdlib.h>
#include <xxhash.h>

void rollup_list_clear(struct rollup_list *list)
{
    arena_clear(&list->arena);
    index_clear(&list->index);
    index_clear(&list->site_index);
    list->n_sites = list->n_items = list->n_cuts = 0;
}

void rollup_list_release(struct rollup_list *list)
{
    arena_release(&list->arena);
    free(list->sites);
    free(list->cuts);
    free(list->items);
    index_release(&list->index);
    index_release(&list->site_index);
    *list = (struct rollup_list){0};
}

/* ---- sites ---- */

/* The number of the cut for @target of @zone.  False: no memory. */
static bool find_cut(
    struct rollup_list *list, const struct zone *zone, struct bucket target, uint32_t *ret_number)
{
    for (size_t i = 0; i < list->n_cuts; i++) {
        if (list->cuts[i].zone == zone && list->cuts[i].target.start_s == target.start_s) {
            *ret_number = (uint32_t)i;
            return true;
        }
    }
    if (!ARRAY_RESERVE(list, cuts)) {
        return false;
    }
    struct rollup_cut *cut = &list->cuts[list->n_cuts];
    *cut = (struct rollup_cut){.zone = zone, .target = target};
    for (int64_t at_s = target.start_s; at_s < target.end_s && cut->n_parts < PARTS_MAX;) {
        struct bucket part = bucket_at(zone, (enum level)(target.level - 1), at_s);
        cut->parts[cut->n_parts++] = part;
        at_s = part.end_s;
    }
    *ret_number = (uint32_t)list->n_cuts++;
    return true;
}

struct wanted_site {
    const struct rollup_list *list;
    struct slice name;
    uint32_t cut;
};

static bool same_site(const void *context, uint32_t number)
{
    const struct wanted_site *w = context;
    const struct rollup_site *site = &w->list->sites[number];
    return site->cut == w->cut && slice_equal(site->name, w->name);
}

/* Clients make sites, and may have made a million, so an index finds a site. */
bool rollup_list_add_site(
    struct rollup_list *list, struct slice site, const struct zone *zone, struct bucket target)
{
    struct wanted_site wanted = {list, site, 0};
    if (!find_cut(list, zone, target, &wanted.cut) || !index_reserve(&list->site_index) ||
        !ARRAY_RESERVE(list, sites)) {
        return false;
    }
    uint64_t hash = XXH3_64bits_withSeed(site.p, site.n, wanted.cut);
    struct index_slot *slot = index_find(&list->site_index, hash, same_site, &wanted);
    if (slot->item != INDEX_NONE) {
        return true;
    }
    struct rollup_site *added = &list->sites[list->n_sites];
    *added = (struct rollup_site){.name = site, .cut = wanted.cut};
    if (!arena_copy(&list->arena, &added->name)) {
        return false;
    }
    index_set(&list->site_index, slot, hash, (uint32_t)list->n_sites++);
    return true;
}

/* ---- pages of a site ---- */

struct wanted_item {
    const struct rollup_list *list;
    uint32_t site;
    enum key_kind kind;
    struct slice page;
};

static bool same_item(const void *context, uint32_t number)
{
    const struct wanted_item *w = context;
    const struct rollup_item *item = &w->list->items[number];
    return item->site == w->site && item->kind == w->kind && slice_equal(item->page, w->page);
}

bool rollup_list_add_item(struct rollup_list *list, uint32_t site, enum key_kind kind,
    struct slice page, uint64_t parts, uint64_t count)
{
    struct wanted_item wanted = {list, site, kind, page};
    uint64_t hash = XXH3_64bits_withSeed(page.p, page.n, site * 4u + (unsigned)kind);
    if (!index_reserve(&list->index) || !ARRAY_RESERVE(list, items)) {
        return false;
    }
    struct index_slot *slot = index_find(&list->index, hash, same_item, &wanted);
    if (slot->item == INDEX_NONE) {
        struct rollup_item *item = &list->items[list->n_items];
        *item = (struct rollup_item){.site = site, .kind = kind, .page = page};
        if (!arena_copy(&list->arena, &item->page)) {
            return false;
        }
        index_set(&list->index, slot, hash, (uint32_t)list->n_items++);
    }
    struct rollup_item *item = &list->items[slot->item];
    item->count += (item->parts & parts) == 0 ? count : 0; /* a scan may show a page twice */
    item->parts |= parts;
    return true;
}
