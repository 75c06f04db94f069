/* merge.c - the phase of a pass that merges the keys of the parts into those of the bucket. */
#include <stdio.h>

#include "storage/job/counted_name.h"
#include "storage/redis/resp.h"
#include "storage/rollup/step.h"
#include "storage/rollup/together.h"

#define MERGE_BUDGET_US 2000 /* merge.lua works so long, and says how far it came */
#define MERGE_PAGES     64   /* pages in one chunk at most */
#define MERGE_KEYS      1000 /* a chunk with so many keys takes no more pages */

static size_t put_sources(struct pass *pass, enum key_kind kind, const struct rollup_item *item)
{
    const struct rollup_cut *cut = rollup_cut_of(&pass->list, item->site);
    size_t n = 0;
    pass_put_bucket_key(pass, kind, item->site, cut->target, item->page);
    for (size_t i = 0; i < cut->n_parts; i++) {
        if ((item->parts >> i & 1) != 0) {
            pass_put_bucket_key(pass, kind, item->site, cut->parts[i], item->page);
            n++;
        }
    }
    return n;
}

/* Can two items go into one chunk? */
static bool go_together(const struct rollup_item *a, const struct rollup_item *b)
{
    return a->site == b->site && a->kind == b->kind && a->way == b->way &&
           (a->way != MERGE_TOGETHER ||
               slice_equal(counted_name_class(a->page), counted_name_class(b->page)));
}

/* How many items, from @first on, go into one chunk. */
static size_t chunk_size(const struct pass *pass, size_t first)
{
    const struct rollup_item *items = pass->list.items;
    size_t keys = 0;
    size_t n = 0;
    while (first + n < pass->list.n_items && n < MERGE_PAGES && (n == 0 || keys < MERGE_KEYS) &&
           go_together(&items[first], &items[first + n])) {
        keys += items[first + n].kind == KEY_PV
                    ? 2 + 2 * (size_t)__builtin_popcountll(items[first + n].parts)
                    : 0;
        n++;
    }
    return n;
}

/* The number behind the letter of the cursor. */
static int64_t position(const struct pass *pass)
{
    struct reply text = {.type = REPLY_TEXT, .text = slice_of(pass->cur + 1)};
    return reply_integer(&text, 0);
}

/* Put the member of `open` that announces the bucket to the next coarser level; "" for a month. */
static void put_announcement(struct pass *pass, const struct rollup_item *item)
{
    const struct rollup_cut *cut = rollup_cut_of(&pass->list, item->site);
    struct key member = {.n = 0};
    if (pass->level != LEVEL_MONTH) {
        key_open_member(&member, pass->list.sites[item->site].name,
            bucket_at(cut->zone, (enum level)(pass->level + 1), cut->target.start_s));
    }
    resp_word(&pass->args, member.p, member.n);
}

/* Put how the items are merged, and, for items that are put together, the name that stands for them
 * and the keys of its sketches. */
static void put_way(struct pass *pass, const struct rollup_item *item)
{
    static const char *const ways[] = {
        [MERGE_OWN] = "own", [MERGE_ANEW] = "anew", [MERGE_TOGETHER] = "together"};
    char text[1 + NAME_CLASS_MAX];
    struct slice other = {text, 0};
    resp_text(&pass->args, ways[item->way]);
    if (item->way == MERGE_TOGETHER) {
        const struct rollup_cut *cut = rollup_cut_of(&pass->list, item->site);
        other = counted_name_of_others(counted_name_class(item->page), text);
        pass_put_bucket_key(pass, KEY_UV, item->site, cut->target, other);
        pass_put_bucket_key(pass, KEY_IP, item->site, cut->target, other);
    }
    resp_slice(&pass->args, other);
}

/* Put the names of @n items, and then for each item its keys and how many sources these have. */
static void put_items(struct pass *pass, const struct rollup_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        resp_slice(&pass->args, items[i].page);
    }
    for (size_t i = 0; i < n; i++) {
        size_t sources = 0;
        if (items[i].kind == KEY_PV) {
            sources = put_sources(pass, KEY_UV, &items[i]);
            (void)put_sources(pass, KEY_IP, &items[i]);
        }
        resp_decimal(&pass->args, (int64_t)sources);
        resp_decimal(&pass->args, (int64_t)sources);
    }
}

static enum pass_result merge_chunk(struct pass *pass, size_t first, size_t n, int64_t *ret_done)
{
    const struct rollup_item *items = &pass->list.items[first];
    const struct rollup_cut *cut = rollup_cut_of(&pass->list, items->site);
    pass_put_key(pass, "open");
    pass_put_bucket_key(pass, items->kind, items->site, cut->target, SLICE(""));
    for (size_t i = 0; i < cut->n_parts; i++) {
        pass_put_bucket_key(pass, items->kind, items->site, cut->parts[i], SLICE(""));
    }
    resp_text(&pass->args, pass->id);
    resp_text(&pass->args, pass->cur);
    resp_decimal(&pass->args, pass->leadership->fencing_token);
    resp_decimal(&pass->args, position(pass));
    resp_decimal(&pass->args, MERGE_BUDGET_US);
    put_announcement(pass, items);
    resp_text(&pass->args, pass->level == LEVEL_HOUR ? "H" : "Z");
    resp_decimal(&pass->args, (int64_t)cut->n_parts);
    resp_decimal(&pass->args, (int64_t)n);
    put_way(pass, items);
    put_items(pass, items, n);
    return pass_run(pass, SCRIPT_MERGE, 11 + 3 * n, ret_done);
}

/* Choose how each item is merged: in a day or a month some names are put together.  False: no
 * memory. */
static bool choose_ways(struct pass *pass)
{
    struct together together = {.config = &pass->core->config,
        .n_partitions = pass->core->partitions.n,
        .retention = &pass->view.retention,
        .now_ms = redis_clock_ms(&pass->core->clock),
        .again = pass->again};
    return pass->level == LEVEL_HOUR || rollup_put_together(&pass->list, &together);
}

enum pass_result pass_merge(struct pass *pass)
{
    size_t at = 0;
    if (!choose_ways(pass)) {
        return PASS_FAILED;
    }
    while (at < pass->list.n_items) {
        int64_t done = 0;
        enum pass_result result = merge_chunk(pass, at, chunk_size(pass, at), &done);
        if (result != PASS_DONE) {
            return result;
        }
        at += (size_t)done;
        (void)snprintf(pass->cur, sizeof(pass->cur), "m%zu", at);
    }
    return PASS_DONE;
}
