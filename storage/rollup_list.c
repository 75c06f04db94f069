#include "storage/rollup_list.h"

#include <stdlib.h>
#include <xxhash.h>

#define SCAN_COUNT   1000 /* entries a SCAN step looks at */
#define SCAN_AT_ONCE 4000 /* entries in one MULTI */

void rollup_list_release(struct rollup_list *list)
{
    arena_release(&list->arena);
    free(list->sites);
    free(list->cuts);
    free(list->items);
    index_release(&list->index);
    *list = (struct rollup_list){0};
}

/* ---- one guarded MULTI ---- */

static void begin(const struct rollup_scope *scope, struct buffer *b)
{
    struct key rolled;
    key_fixed(&rolled, scope->tag, "rolled", SLICE(""));
    buffer_clear(b, 64 * 1024);
    resp_command(b, "MULTI", NULL);
    resp_head(b, 5);
    resp_text(b, "HMGET");
    resp_word(b, rolled.p, rolled.n);
    resp_text(b, "cfg");
    resp_text(b, "pass");
    resp_text(b, "cur");
}

/* Send what begin() began with @n commands more; *ret is the EXEC reply, its first item the
 * guard's. */
static enum list_result finish(
    const struct rollup_scope *scope, struct buffer *b, size_t n, const struct reply **ret)
{
    resp_command(b, "EXEC", NULL);
    if (!scope->lease->still_mine(scope->lease->data)) {
        return LIST_VOID;
    }
    if (!redis_queue(scope->session->redis, b)) {
        return LIST_FAILED;
    }
    for (size_t i = 0; i < n + 3; i++) {
        if (redis_await(scope->session->redis, monotonic_ms() + 5000, ret) != REDIS_OK_STATUS) {
            return LIST_LOST;
        }
    }
    const struct reply *exec = *ret;
    if (exec->type != REPLY_ARRAY || exec->n != n + 1 || exec->items[0].n != 3) {
        return LIST_FAILED;
    }
    const struct reply *is = exec->items[0].items;
    bool mine = slice_equal(is[0].text, slice_of(scope->core->cfg)) &&
                slice_equal(is[1].text, slice_of(scope->pass)) &&
                slice_equal(is[2].text, slice_of(scope->cur));
    return mine ? LIST_OK : LIST_VOID;
}

static bool copy(struct arena *arena, struct slice from, struct slice *ret)
{
    char *p = arena_alloc(arena, from.n);
    if (p == NULL) {
        return false;
    }
    if (from.n > 0) {
        memcpy(p, from.p, from.n);
    }
    *ret = (struct slice){p, from.n};
    return true;
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
    if (!array_reserve(&list->cuts, &list->cuts_capacity, list->n_cuts, sizeof(*list->cuts))) {
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

static bool add_site(
    struct rollup_list *list, struct slice site, const struct zone *zone, struct bucket target)
{
    uint32_t cut = 0;
    if (!find_cut(list, zone, target, &cut)) {
        return false;
    }
    for (size_t i = list->n_sites; i-- > 0;) { /* SSCAN may show one twice */
        if (list->sites[i].cut == cut && slice_equal(list->sites[i].name, site)) {
            return true;
        }
    }
    if (!array_reserve(&list->sites, &list->sites_capacity, list->n_sites, sizeof(*list->sites)) ||
        !copy(&list->arena, site, &list->sites[list->n_sites].name)) {
        return false;
    }
    list->sites[list->n_sites++].cut = cut;
    return true;
}

/* Is the bucket one that the pass completes? */
static bool is_due(const struct rollup_scope *scope, struct bucket bucket)
{
    return bucket.level == scope->level &&
           (bucket.end_s == scope->end_s || (scope->overdue && bucket.end_s < scope->end_s));
}

static bool take_members(
    const struct rollup_scope *scope, struct rollup_list *list, const struct reply *members)
{
    for (size_t i = 0; i < members->n; i++) {
        struct slice member = members->items[i].text;
        struct slice site;
        struct bucket bucket;
        if (!key_open_site(member, &site)) {
            continue;
        }
        const struct zone *zone = site_zones_get(&scope->core->sites, site);
        if (key_open_parse(member, zone, &site, &bucket) && is_due(scope, bucket) &&
            !add_site(list, site, zone, bucket)) {
            return false;
        }
    }
    return true;
}

static enum list_result list_sites(
    const struct rollup_scope *scope, struct rollup_list *list, struct buffer *b)
{
    char cursor[24] = "0";
    struct key open;
    key_fixed(&open, scope->tag, "open", SLICE(""));
    do {
        const struct reply *exec = NULL;
        begin(scope, b);
        resp_head(b, 5);
        resp_text(b, "SSCAN");
        resp_word(b, open.p, open.n);
        resp_text(b, cursor);
        resp_text(b, "COUNT");
        resp_decimal(b, SCAN_COUNT);
        enum list_result result = finish(scope, b, 1, &exec);
        if (result != LIST_OK) {
            return result;
        }
        const struct reply *scan = &exec->items[1];
        if (scan->n != 2 || scan->items[0].text.n >= sizeof(cursor) ||
            !take_members(scope, list, &scan->items[1])) {
            return LIST_FAILED;
        }
        memcpy(cursor, scan->items[0].text.p, scan->items[0].text.n + 1);
    } while (strcmp(cursor, "0") != 0);
    return LIST_OK;
}

/* ---- pages of a site ---- */

/* A site's parts of one kind while they are scanned. */
struct scan {
    uint32_t site;
    enum key_kind kind;
    int64_t size[PARTS_MAX];
    char cursor[PARTS_MAX][24];
    bool done[PARTS_MAX];
};

struct wanted {
    const struct rollup_list *list;
    uint32_t site;
    enum key_kind kind;
    struct slice page;
};

static bool same_item(const void *context, uint32_t number)
{
    const struct wanted *w = context;
    const struct rollup_item *item = &w->list->items[number];
    return item->site == w->site && item->kind == w->kind && slice_equal(item->page, w->page);
}

static bool add_item(
    struct rollup_list *list, const struct scan *scan, struct slice page, size_t part)
{
    struct wanted wanted = {list, scan->site, scan->kind, page};
    uint64_t hash = XXH3_64bits_withSeed(page.p, page.n, scan->site * 4u + (unsigned)scan->kind);
    if (!index_reserve(&list->index) ||
        !array_reserve(&list->items, &list->items_capacity, list->n_items, sizeof(*list->items))) {
        return false;
    }
    struct index_slot *slot = index_find(&list->index, hash, same_item, &wanted);
    if (slot->item == INDEX_NONE) {
        struct rollup_item *item = &list->items[list->n_items];
        *item = (struct rollup_item){.site = scan->site, .kind = scan->kind};
        if (!copy(&list->arena, page, &item->page)) {
            return false;
        }
        index_set(&list->index, slot, hash, (uint32_t)list->n_items++);
    }
    list->items[slot->item].parts |= (uint64_t)1 << part;
    return true;
}

static void part_key(const struct rollup_scope *scope, const struct rollup_list *list,
    const struct scan *scan, size_t part, struct key *key)
{
    key_bucket(key, scope->tag, scan->kind, list->sites[scan->site].name,
        rollup_cut_of(list, scan->site)->parts[part], SLICE(""));
}

static enum list_result ask_sizes(const struct rollup_scope *scope, const struct rollup_list *list,
    struct scan *scan, struct buffer *b)
{
    const struct reply *exec = NULL;
    const struct rollup_cut *cut = rollup_cut_of(list, scan->site);
    begin(scope, b);
    for (size_t i = 0; i < cut->n_parts; i++) {
        struct key key;
        part_key(scope, list, scan, i, &key);
        resp_head(b, 2);
        resp_text(b, cut->parts[i].level == LEVEL_MINUTE ? "HLEN" : "ZCARD");
        resp_word(b, key.p, key.n);
    }
    enum list_result result = finish(scope, b, cut->n_parts, &exec);
    for (size_t i = 0; result == LIST_OK && i < cut->n_parts; i++) {
        scan->size[i] = reply_integer(&exec->items[1 + i], -1);
        scan->done[i] = scan->size[i] == 0;
        if (scan->size[i] < 0) {
            return LIST_FAILED;
        }
    }
    return result;
}

/* Write scan steps for as many unfinished parts as are good for one MULTI; returns how many, their
 * numbers in @which. */
static size_t write_steps(const struct rollup_scope *scope, const struct rollup_list *list,
    const struct scan *scan, struct buffer *b, size_t which[PARTS_MAX])
{
    const struct rollup_cut *cut = rollup_cut_of(list, scan->site);
    size_t n = 0;
    int64_t entries = 0;
    begin(scope, b);
    for (size_t i = 0; i < cut->n_parts && entries < SCAN_AT_ONCE; i++) {
        if (scan->done[i]) {
            continue;
        }
        struct key key;
        part_key(scope, list, scan, i, &key);
        resp_head(b, 5);
        resp_text(b, cut->parts[i].level == LEVEL_MINUTE ? "HSCAN" : "ZSCAN");
        resp_word(b, key.p, key.n);
        resp_text(b, scan->cursor[i]);
        resp_text(b, "COUNT");
        resp_decimal(b, SCAN_COUNT);
        entries += scan->size[i] < SCAN_COUNT ? scan->size[i] : SCAN_COUNT;
        which[n++] = i;
    }
    return n;
}

static bool take_step(
    struct rollup_list *list, struct scan *scan, size_t part, const struct reply *step)
{
    if (step->n != 2 || step->items[0].text.n >= sizeof(scan->cursor[part])) {
        return false;
    }
    const struct reply *pairs = &step->items[1];
    for (size_t i = 0; i + 1 < pairs->n; i += 2) {
        if (!add_item(list, scan, pairs->items[i].text, part)) {
            return false;
        }
    }
    memcpy(scan->cursor[part], step->items[0].text.p, step->items[0].text.n + 1);
    scan->done[part] = strcmp(scan->cursor[part], "0") == 0;
    return true;
}

static enum list_result list_pages(const struct rollup_scope *scope, struct rollup_list *list,
    uint32_t site, enum key_kind kind, struct buffer *b)
{
    struct scan scan = {.site = site, .kind = kind};
    for (size_t i = 0; i < PARTS_MAX; i++) {
        scan.cursor[i][0] = '0';
    }
    enum list_result result = ask_sizes(scope, list, &scan, b);
    while (result == LIST_OK) {
        const struct reply *exec = NULL;
        size_t which[PARTS_MAX];
        size_t n = write_steps(scope, list, &scan, b, which);
        if (n == 0) {
            return LIST_OK;
        }
        result = finish(scope, b, n, &exec);
        for (size_t i = 0; result == LIST_OK && i < n; i++) {
            if (!take_step(list, &scan, which[i], &exec->items[1 + i])) {
                result = LIST_FAILED;
            }
        }
    }
    return result;
}

enum list_result rollup_list_make(
    const struct rollup_scope *scope, bool sites_only, struct rollup_list *ret)
{
    struct buffer b;
    arena_clear(&ret->arena);
    index_clear(&ret->index);
    ret->n_sites = ret->n_items = ret->n_cuts = 0;
    buffer_init(&b);
    enum list_result result = list_sites(scope, ret, &b);
    for (size_t i = 0; !sites_only && result == LIST_OK && i < ret->n_sites; i++) {
        result = list_pages(scope, ret, (uint32_t)i, KEY_PV, &b);
        if (result == LIST_OK) {
            result = list_pages(scope, ret, (uint32_t)i, KEY_VV, &b);
        }
    }
    buffer_release(&b);
    return result;
}
