#include "storage/rollup/together.h"

#include <stdlib.h>

#include "storage/job/name_cap.h"
#include "storage/time/units.h"
#include "storage/time/write_plan.h"

/* The parts' hashes may be gone before the pass has given all keys of the parts their expiry.  Then
 * the names of the bucket stand in for those of the parts (list_make.c), so the bucket must have
 * all names.  A pass is taken not to last longer than PASS_MS. */
#define PASS_MS (HOUR_S * 1000)

/* ---- order ---- */

static int by_group(const struct rollup_item *x, const struct rollup_item *y)
{
    if (x->site != y->site) {
        return x->site < y->site ? -1 : 1;
    }
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static int by_class(const struct rollup_item *x, const struct rollup_item *y)
{
    int order = (int)name_has_cap(x->page) - (int)name_has_cap(y->page);
    return order != 0 ? order
                      : slice_compare(counted_name_class(x->page), counted_name_class(y->page));
}

/* Order items by site and kind, then by class, and in a class the names that keep entries first. */
static int by_count(const void *a, const void *b)
{
    const struct rollup_item *x = a;
    const struct rollup_item *y = b;
    int order = by_group(x, y);
    order = order != 0 ? order : by_class(x, y);
    if (order != 0 || x->count == y->count) {
        return order != 0 ? order : slice_compare(x->page, y->page);
    }
    return x->count < y->count ? 1 : -1;
}

/* Order items by site and kind, then by way: what is put together begins anew (MERGE_ANEW) before
 * anything is added (MERGE_TOGETHER). */
static int by_way(const void *a, const void *b)
{
    const struct rollup_item *x = a;
    const struct rollup_item *y = b;
    int order = by_group(x, y);
    order = order != 0 ? order : (x->way > y->way) - (x->way < y->way);
    order = order != 0 ? order : by_class(x, y);
    return order != 0 ? order : slice_compare(x->page, y->page);
}

/* ---- choosing ---- */

/* Do all parts stay for as long as the pass may last? */
static bool parts_stay(const struct together *together, const struct rollup_cut *cut)
{
    for (size_t i = 0; i < cut->n_parts; i++) {
        int64_t at_ms =
            expiry_ms(cut->parts[i].end_s, retention_keep_s(together->retention, cut->parts[i]));
        if (at_ms != 0 && at_ms < together->now_ms + PASS_MS) {
            return false;
        }
    }
    return true;
}

static uint64_t all_parts(const struct rollup_cut *cut)
{
    return (UINT64_C(1) << cut->n_parts) - 1;
}

/* The items of one site and kind, [first, last), in the order of by_count(). */
struct group {
    size_t first, plain, last; /* items [first, plain) are a few names that have no cap */
};

/* Have what is put together of the class of item @like begin anew.  Late events may have come into
 * parts that the list does not know, so all parts are looked at.  False: out of memory. */
static bool begin_anew(struct rollup_list *list, const struct group *group, size_t like)
{
    struct slice class = counted_name_class(list->items[like].page);
    uint64_t parts = all_parts(rollup_cut_of(list, list->items[like].site));
    for (size_t i = group->first; i < group->plain; i++) {
        if (counted_name_is_other(list->items[i].page, class)) {
            list->items[i].way = MERGE_ANEW;
            list->items[i].parts = parts;
            return true;
        }
    }
    char *name = arena_alloc(&list->arena, class.n + 1);
    if (name == NULL || !ARRAY_RESERVE(list, items)) {
        return false;
    }
    struct rollup_item *item = &list->items[list->n_items++];
    *item = (struct rollup_item){
        .way = MERGE_ANEW, .page = counted_name_of_others(class, name), .parts = parts};
    item->site = list->items[like].site;
    item->kind = list->items[like].kind;
    return true;
}

/* Choose the ways of items [first, last), which are all names of a class.  False: out of memory. */
static bool choose_class(struct rollup_list *list, const struct together *together,
    const struct group *group, size_t first, size_t last)
{
    const struct rollup_item *like = &list->items[first];
    uint64_t cap =
        name_cap(together->config, together->n_partitions, like->page, like->kind == KEY_VV);
    bool too_many =
        cap > 0 && last - first > cap && parts_stay(together, rollup_cut_of(list, like->site));
    for (size_t i = first + cap; too_many && i < last; i++) {
        list->items[i].way = MERGE_TOGETHER;
    }
    return (!too_many && !together->again) || begin_anew(list, group, first);
}

static bool choose_group(
    struct rollup_list *list, const struct together *together, const struct group *group)
{
    for (size_t first = group->plain, last; first < group->last; first = last) {
        last = first + 1;
        while (last < group->last && by_class(&list->items[last], &list->items[first]) == 0) {
            last++;
        }
        if (!choose_class(list, together, group, first, last)) {
            return false;
        }
    }
    return true;
}

bool rollup_put_together(struct rollup_list *list, const struct together *together)
{
    size_t n = list->n_items;
    struct group group = {0};
    if (n > 0) { /* qsort takes no array of none */
        qsort(list->items, n, sizeof(*list->items), by_count);
    }
    for (; group.first < n; group.first = group.last) {
        const struct rollup_item *like = &list->items[group.first];
        for (group.last = group.plain = group.first;
             group.last < n && by_group(&list->items[group.last], like) == 0; group.last++) {
            group.plain += !name_has_cap(list->items[group.last].page);
        }
        if (!choose_group(list, together, &group)) {
            return false;
        }
    }
    if (list->n_items > 0) {
        qsort(list->items, list->n_items, sizeof(*list->items), by_way);
    }
    return true;
}
