#include "storage/pages_scan.h"

#include <stdlib.h>
#include <string.h>

#define SIZES_AT_ONCE 500   /* HLEN and ZCARD in one piece */
#define SCAN_COUNT    "250" /* entries that a step of a scan looks at */
#define SCAN_ENTRIES  250
#define PIECE_ENTRIES 500 /* in one piece: about 0.5 ms of zsets, less of hashes */
#define SLOTS         16  /* buckets of a partition that are scanned at the same time */

struct staged {
    uint32_t sum;
    uint64_t pv;
};

/* A bucket that is being scanned. */
struct slot {
    bool busy;
    size_t bucket; /* in the cover */
    char cursor[24];
    struct staged *staged; /* owned */
    size_t n_staged, staged_capacity;
};

/* What is scanned of one partition. */
struct lot {
    uint32_t *sizes; /* owned: per bucket */
    size_t next;     /* the first bucket that no slot has taken */
    struct slot slots[SLOTS];
    struct slot *asked[SLOTS]; /* in the piece under way, in its order */
    size_t n_asked;
};

struct run {
    struct pages_scan *scan;
    struct window_read *w;
    struct slice prefix;
    uint32_t buckets_done;
    struct lot lots[PARTITIONS_MAX];
};

void pages_scan_clear(struct pages_scan *scan)
{
    arena_clear(&scan->arena);
    index_clear(&scan->index);
    scan->n_sums = 0;
    scan->chosen = false;
    scan->buckets_read = 0;
}

void pages_scan_release(struct pages_scan *scan)
{
    arena_release(&scan->arena);
    index_release(&scan->index);
    free(scan->sums);
    *scan = (struct pages_scan){0};
}

/* ---- sums ---- */

struct wanted {
    const struct pages_scan *scan;
    struct slice page;
};

static bool same_page(const void *context, uint32_t number)
{
    const struct wanted *wanted = context;
    return slice_equal(wanted->scan->sums[number].page, wanted->page);
}

static bool add_sum(struct pages_scan *scan, struct slice page, uint32_t *ret)
{
    char *copy = arena_alloc(&scan->arena, page.n + 1);
    if (copy == NULL ||
        !array_reserve(&scan->sums, &scan->sums_capacity, scan->n_sums, sizeof(*scan->sums))) {
        return false;
    }
    memcpy(copy, page.p, page.n);
    *ret = (uint32_t)scan->n_sums;
    scan->sums[scan->n_sums++] = (struct page_sum){.page = {copy, page.n}};
    return true;
}

/* The page's sum, INDEX_NONE if it is not asked for.  False: no memory. */
static bool find_sum(
    struct pages_scan *scan, struct slice site, struct slice page, bool add, uint32_t *ret)
{
    struct wanted wanted = {scan, page};
    uint64_t hash = page_hash(site, page);
    if (!index_reserve(&scan->index)) {
        return false;
    }
    struct index_slot *slot = index_find(&scan->index, hash, same_page, &wanted);
    *ret = slot->item;
    if (slot->item != INDEX_NONE || !add) {
        return true;
    }
    if (!add_sum(scan, page, ret)) {
        return false;
    }
    index_set(&scan->index, slot, hash, *ret);
    return true;
}

bool pages_scan_choose(struct pages_scan *scan, struct slice site, struct slice page)
{
    uint32_t ignored;
    scan->chosen = true;
    return find_sum(scan, site, page, true, &ignored);
}

/* All that came of one bucket: a page that came twice has the greater of its values. */
static void add_staged(struct run *run, struct slot *slot)
{
    uint32_t bucket = ++run->buckets_done;
    for (size_t i = 0; i < slot->n_staged; i++) {
        struct page_sum *sum = &run->scan->sums[slot->staged[i].sum];
        sum->present[slot->bucket / 8] |= (uint8_t)(1u << (slot->bucket & 7));
        uint64_t before = sum->last == bucket ? sum->last_pv : 0;
        if (slot->staged[i].pv > before) {
            sum->pv += slot->staged[i].pv - before;
            sum->last_pv = slot->staged[i].pv;
            sum->last = bucket;
        }
    }
    slot->n_staged = 0;
    slot->busy = false;
}

/* ---- sizes ---- */

static void bucket_key(const struct window_read *w, unsigned p, size_t bucket, struct key *key)
{
    key_bucket(key, w->core->partitions.tag[p], KEY_PV, w->asked->site,
        w->covers[p].buckets[bucket], SLICE(""));
}

static bool is_hash(const struct window_read *w, unsigned p, size_t bucket)
{
    return w->covers[p].buckets[bucket].level == LEVEL_MINUTE;
}

/* Ask each partition for the sizes of buckets [first, first + SIZES_AT_ONCE). */
static enum storage_err ask_sizes(struct run *run, size_t first, size_t *ret_pieces)
{
    struct window_read *w = run->w;
    *ret_pieces = 0;
    for (unsigned p = 0; p < w->core->partitions.n; p++) {
        size_t left = w->covers[p].n > first ? w->covers[p].n - first : 0;
        size_t n = left < SIZES_AT_ONCE ? left : SIZES_AT_ONCE;
        if (n > 0 && !window_piece_begin(w, p, first, n)) {
            return STORAGE_NOMEM;
        }
        for (size_t i = first; i < first + n; i++) {
            struct key key;
            bucket_key(w, p, i, &key);
            window_piece_put(w, is_hash(w, p, i) ? "HLEN" : "ZCARD", &key, NULL, NULL);
            if (!window_count_key(w, p, KEY_PV, SLICE(""), w->covers[p].buckets[i])) {
                return STORAGE_NOMEM;
            }
        }
        if (n > 0) {
            window_piece_end(w);
            ++*ret_pieces;
        }
    }
    return window_send(w) ? STORAGE_OK : STORAGE_NOMEM;
}

static enum storage_err take_sizes(struct run *run)
{
    const struct reply *items = NULL;
    struct window_piece piece;
    enum storage_err err = window_take(run->w, &items, &piece);
    if (err == STORAGE_OK && run->scan->at_s == 0) {
        run->scan->at_s = run->w->latest_s;
    }
    uint32_t *sizes = run->lots[piece.partition].sizes;
    for (size_t i = 0; err == STORAGE_OK && sizes != NULL && items != NULL && i < piece.n_commands;
         i++) {
        int64_t size = reply_integer(&items[i], -1);
        if (size < 0) {
            return window_foreign(run->w);
        }
        sizes[piece.first + i] = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    }
    return err;
}

static enum storage_err read_sizes(struct run *run)
{
    struct window_read *w = run->w;
    enum storage_err err = STORAGE_OK;
    size_t pieces = 1;
    for (unsigned p = 0; p < w->core->partitions.n; p++) {
        run->lots[p].sizes = calloc(w->covers[p].n + 1, sizeof(*run->lots[p].sizes));
        if (run->lots[p].sizes == NULL) {
            return STORAGE_NOMEM;
        }
    }
    for (size_t first = 0; err == STORAGE_OK && !w->stale && pieces > 0; first += SIZES_AT_ONCE) {
        err = ask_sizes(run, first, &pieces);
        for (size_t i = 0; err == STORAGE_OK && i < pieces; i++) {
            err = take_sizes(run);
        }
    }
    return err;
}

/* ---- entries ---- */

static uint32_t size_of(const struct lot *lot, size_t bucket)
{
    return lot->sizes != NULL ? lot->sizes[bucket] : 0;
}

/* Give free slots the next buckets that are not empty. */
static void fill_slots(struct run *run, unsigned p)
{
    struct lot *lot = &run->lots[p];
    for (size_t i = 0; i < SLOTS; i++) {
        while (lot->next < run->w->covers[p].n && size_of(lot, lot->next) == 0) {
            lot->next++;
        }
        if (!lot->slots[i].busy && lot->next < run->w->covers[p].n) {
            lot->slots[i].busy = true;
            lot->slots[i].bucket = lot->next++;
            memcpy(lot->slots[i].cursor, "0", 2);
            run->scan->buckets_read++;
        }
    }
}

/* One step of the scans of partition @p: which buckets, and how many entries may come. */
static void choose_slots(struct run *run, unsigned p, size_t *ret_first, size_t *ret_last)
{
    struct lot *lot = &run->lots[p];
    size_t entries = 0;
    *ret_first = SIZE_MAX;
    *ret_last = 0;
    lot->n_asked = 0;
    fill_slots(run, p);
    for (size_t i = 0; i < SLOTS && entries < PIECE_ENTRIES; i++) {
        struct slot *slot = &lot->slots[i];
        if (slot->busy) {
            uint32_t size = size_of(lot, slot->bucket);
            entries += size < SCAN_ENTRIES ? size : SCAN_ENTRIES;
            *ret_first = slot->bucket < *ret_first ? slot->bucket : *ret_first;
            *ret_last = slot->bucket > *ret_last ? slot->bucket : *ret_last;
            lot->asked[lot->n_asked++] = slot;
        }
    }
}

static enum storage_err ask_entries(struct run *run, unsigned p, size_t *pieces)
{
    struct window_read *w = run->w;
    struct lot *lot = &run->lots[p];
    size_t first, last;
    choose_slots(run, p, &first, &last);
    if (lot->n_asked == 0) {
        return STORAGE_OK;
    }
    if (!window_piece_begin(w, p, first, last - first + 1)) {
        return STORAGE_NOMEM;
    }
    for (size_t i = 0; i < lot->n_asked; i++) {
        const struct slot *slot = lot->asked[i];
        struct key key;
        bucket_key(w, p, slot->bucket, &key);
        window_piece_put(
            w, is_hash(w, p, slot->bucket) ? "HSCAN" : "ZSCAN", &key, slot->cursor, SCAN_COUNT);
    }
    window_piece_end(w);
    ++*pieces;
    return STORAGE_OK;
}

/* Room for the buckets that a page is in. */
static bool reserve_present(struct run *run, unsigned p, struct page_sum *sum)
{
    size_t n = run->w->covers[p].n / 8 + 1;
    if (sum->present == NULL) {
        sum->present = arena_alloc(&run->scan->arena, n);
        if (sum->present != NULL) {
            memset(sum->present, 0, n);
        }
    }
    return sum->present != NULL;
}

static enum storage_err stage(
    struct run *run, unsigned p, struct slot *slot, struct slice page, const struct reply *value)
{
    struct pages_scan *scan = run->scan;
    uint32_t sum = INDEX_NONE;
    int64_t pv = reply_integer(value, -1);
    bool wanted = page.n > 0 && page.n >= run->prefix.n && /* no bytes: the whole site */
                  (run->prefix.n == 0 || memcmp(page.p, run->prefix.p, run->prefix.n) == 0);
    if (pv < 0) {
        return window_foreign(run->w);
    }
    if (!wanted || pv == 0) {
        return STORAGE_OK;
    }
    if (scan->n_sums >= PAGES_SCAN_MAX) {
        return STORAGE_TOO_BROAD;
    }
    if (!find_sum(scan, run->w->asked->site, page, !scan->chosen, &sum)) {
        return STORAGE_NOMEM;
    }
    if (sum == INDEX_NONE) {
        return STORAGE_OK;
    }
    if (!reserve_present(run, p, &scan->sums[sum]) ||
        !array_reserve(
            &slot->staged, &slot->staged_capacity, slot->n_staged, sizeof(*slot->staged))) {
        return STORAGE_NOMEM;
    }
    slot->staged[slot->n_staged++] = (struct staged){sum, (uint64_t)pv};
    return STORAGE_OK;
}

/* One step of one bucket: a cursor, and names and numbers by turns. */
static enum storage_err take_step(
    struct run *run, unsigned p, struct slot *slot, const struct reply *step)
{
    enum storage_err err = STORAGE_OK;
    if (step->type != REPLY_ARRAY || step->n != 2 ||
        step->items[0].text.n >= sizeof(slot->cursor) || step->items[1].n % 2 != 0) {
        return window_foreign(run->w);
    }
    const struct reply *entries = &step->items[1];
    for (size_t i = 0; err == STORAGE_OK && i < entries->n; i += 2) {
        err = stage(run, p, slot, entries->items[i].text, &entries->items[i + 1]);
    }
    memcpy(slot->cursor, step->items[0].text.p, step->items[0].text.n + 1);
    if (err == STORAGE_OK && strcmp(slot->cursor, "0") == 0) {
        add_staged(run, slot);
    }
    return err;
}

static enum storage_err take_entries(struct run *run)
{
    const struct reply *items = NULL;
    struct window_piece piece;
    enum storage_err err = window_take(run->w, &items, &piece);
    struct lot *lot = &run->lots[piece.partition];
    for (size_t i = 0; err == STORAGE_OK && items != NULL && i < lot->n_asked; i++) {
        err = take_step(run, piece.partition, lot->asked[i], &items[i]);
    }
    return err;
}

/* All partitions in step: what one answers is worked on here while Redis is at the next. */
static enum storage_err read_entries(struct run *run)
{
    struct window_read *w = run->w;
    enum storage_err err = STORAGE_OK;
    size_t pieces = 1;
    while (err == STORAGE_OK && !w->stale && pieces > 0) {
        pieces = 0;
        for (unsigned p = 0; err == STORAGE_OK && p < w->core->partitions.n; p++) {
            err = ask_entries(run, p, &pieces);
        }
        if (err == STORAGE_OK && !window_send(w)) {
            err = STORAGE_NOMEM;
        }
        for (size_t i = 0; err == STORAGE_OK && i < pieces; i++) {
            err = take_entries(run);
        }
    }
    return err;
}

static void release_run(struct run *run)
{
    for (size_t p = 0; p < PARTITIONS_MAX; p++) {
        free(run->lots[p].sizes);
        for (size_t i = 0; i < SLOTS; i++) {
            free(run->lots[p].slots[i].staged);
        }
    }
    free(run);
}

enum storage_err pages_scan_run(struct pages_scan *scan, struct window_read *w, struct slice prefix)
{
    struct run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return STORAGE_NOMEM;
    }
    run->scan = scan;
    run->w = w;
    run->prefix = prefix;
    scan->at_s = 0;
    enum storage_err err = read_sizes(run);
    if (err == STORAGE_OK && !w->stale) {
        err = read_entries(run);
    }
    w->latest_s = scan->at_s;
    release_run(run);
    return err;
}
