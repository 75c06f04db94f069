#include "storage/pages/scan.h"

#include <stdlib.h>

#include "storage/pages/memory.h"
#include "storage/pages/table.h"
#include "storage/read/window.h"

/* The first look.  A hash or zset of at most 128 short names, as Redis is made, comes as a whole
 * whatever COUNT says; of a larger one comes about COUNT. */
#define LOOK_COUNT SLICE("128")
#define LOOK_WORK  32 /* hashes in one piece; a zset counts twice: about 2 ms if all are large */

#define SCAN_COUNT SLICE("250") /* entries that a step of a scan looks at */
#define SCAN_WORK  4            /* steps in one piece, of zsets as above: about 0.5 ms */
#define SLOTS      16           /* buckets of a partition that are scanned at the same time */

/* Which buckets a page is in takes a bit for each of the window: so many bytes in all, which four
 * million pages need in 256 buckets. */
#define PRESENT_BYTES_MAX (PAGES_SCAN_MAX / 8 * 256)

struct staged {
    uint32_t sum;
    uint64_t pv;
};

/* A bucket that is being scanned. */
struct slot {
    bool busy;
    size_t bucket;              /* in the cover */
    struct remembered_run *run; /* to whose own sums it goes; NULL: to those of the question */
    char cursor[24];
    struct staged *staged; /* owned */
    size_t n_staged, staged_capacity;
};

/* What is scanned of one partition. */
struct lot {
    size_t *large; /* owned: buckets that the first look did not bring as a whole */
    size_t n_large, large_capacity;
    size_t next; /* of them, that no slot has taken */
    struct slot slots[SLOTS];
    struct slot *asked[SLOTS]; /* in the piece under way, in its order */
    size_t n_asked;
};

struct scanning {
    struct pages_scan *scan;
    struct proved_read *r;
    struct slice prefix;
    struct pages_memory memory;
    size_t n_buckets; /* of the longest cover: foreign data may have a page where it is not */
    size_t n_most;    /* pages that there may be */
    uint32_t turn;    /* buckets read through */
    struct slot look;
    struct lot lots[PARTITIONS_MAX];
};

void pages_scan_clear(struct pages_scan *scan)
{
    page_sums_clear(&scan->sums);
    scan->chosen = false;
    scan->buckets_read = 0;
}

void pages_scan_release(struct pages_scan *scan)
{
    page_sums_release(&scan->sums);
}

bool pages_scan_choose(struct pages_scan *scan, struct slice site, struct slice page)
{
    uint32_t ignored;
    scan->chosen = true;
    return page_sums_find(&scan->sums, site, page, true, &ignored);
}

/* ---- sums ---- */

/* The sum of a page in those of the question; INDEX_NONE: it is not asked for. */
static enum storage_err find_asked(const struct scanning *s, struct slice page, uint32_t *ret)
{
    struct page_sums *sums = &s->scan->sums;
    *ret = INDEX_NONE;
    if (page.n < s->prefix.n ||
        (s->prefix.n > 0 && memcmp(page.p, s->prefix.p, s->prefix.n) != 0)) {
        return STORAGE_OK;
    }
    if (sums->n >= s->n_most) {
        return STORAGE_TOO_BROAD;
    }
    if (!page_sums_find(sums, s->r->asked->site, page, !s->scan->chosen, ret)) {
        return STORAGE_NOMEM;
    }
    bool ok = *ret == INDEX_NONE || page_sums_reserve_present(sums, *ret, s->n_buckets);
    return ok ? STORAGE_OK : STORAGE_NOMEM;
}

/* The sum of a page in those of a run of @n buckets, which has all pages. */
static enum storage_err find_own(
    const struct scanning *s, struct page_sums *own, size_t n, struct slice page, uint32_t *ret)
{
    if (own->n >= s->n_most) {
        return STORAGE_TOO_BROAD;
    }
    bool ok = page_sums_find(own, s->r->asked->site, page, true, ret) &&
              page_sums_reserve_present(own, *ret, n);
    return ok ? STORAGE_OK : STORAGE_NOMEM;
}

/* All that a run's table has, to the sums of the question. */
static enum storage_err add_table(
    struct scanning *s, const struct remembered_run *run, struct slice table)
{
    enum storage_err err = STORAGE_OK;
    struct page_entry entry;
    size_t at = 0;
    while (err == STORAGE_OK && page_table_next(table, run->n, &at, &entry)) {
        uint32_t i;
        err = find_asked(s, entry.page, &i);
        if (err != STORAGE_OK || i == INDEX_NONE) {
            continue;
        }
        struct page_sum *sum = &s->scan->sums.all[i];
        sum->pv += entry.pv;
        for (size_t b = 0; b < run->n; b++) {
            size_t to = run->first + b;
            sum->present[to / 8] |= (uint8_t)((entry.present[b / 8] >> (b & 7) & 1) << (to & 7));
        }
    }
    return err;
}

static enum storage_err finish_run(struct scanning *s, unsigned p, struct remembered_run *run)
{
    struct slice table;
    if (!pages_memory_table(&s->memory, p, run, &table)) {
        return STORAGE_NOMEM;
    }
    return add_table(s, run, table);
}

static enum storage_err add_recalled(struct scanning *s)
{
    enum storage_err err = STORAGE_OK;
    for (unsigned p = 0; p < s->r->core->partitions.n; p++) {
        const struct remembered_runs *runs = &s->memory.of[p].runs;
        for (size_t i = 0; err == STORAGE_OK && i < runs->n; i++) {
            if (runs->all[i].recalled) {
                err = finish_run(s, p, &runs->all[i]);
            }
        }
    }
    return err;
}

/* ---- a bucket ---- */

/* Nothing has come of it so far. */
static void slot_begin(struct scanning *s, unsigned p, struct slot *slot, size_t bucket)
{
    struct remembered_run *run = pages_memory_run(&s->memory, p, bucket);
    bool own = run != NULL &&
               pages_memory_has_room(&s->memory, pages_memory_sums(&s->memory, p, run), run->n);
    slot->busy = true;
    slot->bucket = bucket;
    slot->run = own ? run : NULL;
    slot->n_staged = 0;
    memcpy(slot->cursor, "0", 2);
}

/* All that came of one bucket: a page that came twice has the greater of its values. */
static enum storage_err slot_end(struct scanning *s, unsigned p, struct slot *slot)
{
    struct remembered_run *run = pages_memory_run(&s->memory, p, slot->bucket);
    struct run_sums *of_run = run != NULL ? pages_memory_sums(&s->memory, p, run) : NULL;
    struct page_sums *sums = slot->run != NULL ? &of_run->own : &s->scan->sums;
    size_t bucket = slot->bucket - (slot->run != NULL ? slot->run->first : 0);
    s->turn++;
    for (size_t i = 0; i < slot->n_staged; i++) {
        page_sums_take(sums, slot->staged[i].sum, s->turn, bucket, slot->staged[i].pv);
    }
    slot->n_staged = 0;
    slot->busy = false;
    s->scan->buckets_read++;
    return of_run != NULL && --of_run->left == 0 ? finish_run(s, p, run) : STORAGE_OK;
}

static enum storage_err stage(
    struct scanning *s, unsigned p, struct slot *slot, struct slice page, const struct reply *value)
{
    uint32_t sum = INDEX_NONE;
    int64_t pv = reply_integer(value, -1);
    if (pv < 0 || page.n > EVENT_PAGE_MAX) {
        return proved_foreign(s->r);
    }
    if (page.n == 0 || pv == 0) { /* no bytes: the whole site */
        return STORAGE_OK;
    }
    enum storage_err err = slot->run == NULL
                               ? find_asked(s, page, &sum)
                               : find_own(s, &pages_memory_sums(&s->memory, p, slot->run)->own,
                                     slot->run->n, page, &sum);
    if (err != STORAGE_OK || sum == INDEX_NONE) {
        return err;
    }
    if (!array_reserve(
            &slot->staged, &slot->staged_capacity, slot->n_staged, sizeof(*slot->staged))) {
        return STORAGE_NOMEM;
    }
    slot->staged[slot->n_staged++] = (struct staged){sum, (uint64_t)pv};
    return STORAGE_OK;
}

/* A step: a cursor, and names and numbers by turns. */
static bool is_step(const struct slot *slot, const struct reply *step)
{
    return step->type == REPLY_ARRAY && step->n == 2 &&
           step->items[0].text.n < sizeof(slot->cursor) && step->items[1].n % 2 == 0;
}

/* One step of one bucket. */
static enum storage_err take_step(
    struct scanning *s, unsigned p, struct slot *slot, const struct reply *step)
{
    enum storage_err err = STORAGE_OK;
    if (!is_step(slot, step)) {
        return proved_foreign(s->r);
    }
    const struct reply *entries = &step->items[1];
    for (size_t i = 0; err == STORAGE_OK && i < entries->n; i += 2) {
        err = stage(s, p, slot, entries->items[i].text, &entries->items[i + 1]);
    }
    memcpy(slot->cursor, step->items[0].text.p, step->items[0].text.n + 1);
    return err == STORAGE_OK && strcmp(slot->cursor, "0") == 0 ? slot_end(s, p, slot) : err;
}

/* ---- asking ---- */

static bool is_hash(const struct proved_read *r, unsigned p, size_t bucket)
{
    return r->covers[p].buckets[bucket].level == LEVEL_MINUTE;
}

static size_t work_of(const struct proved_read *r, unsigned p, size_t bucket)
{
    return is_hash(r, p, bucket) ? 1 : 2;
}

static void put_scan(
    struct proved_read *r, unsigned p, size_t bucket, const char *cursor, struct slice count)
{
    struct key key;
    key_bucket(&key, r->core->partitions.tag[p], KEY_PV, r->asked->site,
        r->covers[p].buckets[bucket], SLICE(""));
    proved_command(r, is_hash(r, p, bucket) ? "HSCAN" : "ZSCAN", 1, 3);
    proved_key(r, &key);
    proved_word(r, (struct slice){cursor, strlen(cursor)});
    proved_word(r, SLICE("COUNT"));
    proved_word(r, count);
}

/* The next bucket from @bucket on that must be read; the cover's n: none. */
static size_t next_unread(const struct scanning *s, unsigned p, size_t bucket)
{
    return runs_next_unread(&s->memory.of[p].runs, bucket);
}

static bool begin_piece(struct scanning *s, unsigned p, size_t first)
{
    return proved_piece(s->r, p, &s->r->covers[p], &s->memory.of[p].runs, first);
}

/* One piece of the first look, from *bucket on, which moves behind it. */
static bool ask_look(struct scanning *s, unsigned p, size_t *bucket)
{
    struct proved_read *r = s->r;
    size_t first = *bucket;
    size_t end = first;
    size_t work = 0;
    if (!begin_piece(s, p, first)) {
        return false;
    }
    while (*bucket < r->covers[p].n && work < LOOK_WORK) {
        put_scan(r, p, *bucket, "0", LOOK_COUNT);
        work += work_of(r, p, *bucket);
        end = *bucket + 1;
        *bucket = next_unread(s, p, end);
    }
    proved_piece_end(r, end - first);
    return true;
}

/* Before anything is asked, so that no answer is left under way if it is too much. */
static enum storage_err count_keys(struct proved_read *r)
{
    enum storage_err err = STORAGE_OK;
    const struct slice *whole_site = &SLICE("");
    for (unsigned p = 0; err == STORAGE_OK && p < r->core->partitions.n; p++) {
        err = window_count_keys(r, p, KEY_PV, &whole_site, 1, &r->covers[p]);
    }
    return err;
}

/* Look at all that is not remembered, of all partitions at once; of those of which all is, at the
 * state. */
static enum storage_err ask_looks(struct scanning *s)
{
    struct proved_read *r = s->r;
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        size_t bucket = next_unread(s, p, 0);
        do {
            if (!ask_look(s, p, &bucket)) {
                return STORAGE_NOMEM;
            }
        } while (bucket < r->covers[p].n);
    }
    return proved_send(r) ? STORAGE_OK : STORAGE_NOMEM;
}

/* One bucket of the first look: all of it, or it is a large one. */
static enum storage_err take_look(
    struct scanning *s, unsigned p, size_t bucket, const struct reply *step)
{
    struct lot *lot = &s->lots[p];
    if (!is_step(&s->look, step)) {
        return proved_foreign(s->r);
    }
    if (slice_equal(step->items[0].text, SLICE("0"))) {
        slot_begin(s, p, &s->look, bucket);
        return take_step(s, p, &s->look, step);
    }
    if (!array_reserve(&lot->large, &lot->large_capacity, lot->n_large, sizeof(*lot->large))) {
        return STORAGE_NOMEM;
    }
    lot->large[lot->n_large++] = bucket;
    return STORAGE_OK;
}

static enum storage_err take_looks(struct scanning *s)
{
    struct proved_read *r = s->r;
    enum storage_err err = STORAGE_OK;
    while (err == STORAGE_OK && r->next < r->n_pieces) { /* if stale too: all views are learnt */
        const struct reply *items = NULL;
        struct proved_piece piece;
        err = proved_take(r, &items, &piece);
        items = r->stale ? NULL : items;
        size_t bucket = piece.first;
        for (size_t i = 0; err == STORAGE_OK && items != NULL && i < piece.n_commands; i++) {
            err = take_look(s, piece.partition, bucket, &items[i]);
            bucket = next_unread(s, piece.partition, bucket + 1);
        }
    }
    return err;
}

/* ---- large buckets ---- */

/* One step of the scans of partition @p: which buckets. */
static void choose_slots(struct scanning *s, unsigned p, size_t *ret_first, size_t *ret_last)
{
    struct lot *lot = &s->lots[p];
    size_t work = 0;
    *ret_first = SIZE_MAX;
    *ret_last = 0;
    lot->n_asked = 0;
    for (size_t i = 0; i < SLOTS && work < SCAN_WORK; i++) {
        struct slot *slot = &lot->slots[i];
        if (!slot->busy && lot->next < lot->n_large) {
            slot_begin(s, p, slot, lot->large[lot->next++]);
        }
        if (slot->busy) {
            work += work_of(s->r, p, slot->bucket);
            *ret_first = slot->bucket < *ret_first ? slot->bucket : *ret_first;
            *ret_last = slot->bucket > *ret_last ? slot->bucket : *ret_last;
            lot->asked[lot->n_asked++] = slot;
        }
    }
}

static enum storage_err ask_steps(struct scanning *s, unsigned p)
{
    struct lot *lot = &s->lots[p];
    size_t first, last;
    choose_slots(s, p, &first, &last);
    if (lot->n_asked == 0) {
        return STORAGE_OK;
    }
    if (!begin_piece(s, p, first)) {
        return STORAGE_NOMEM;
    }
    for (size_t i = 0; i < lot->n_asked; i++) {
        put_scan(s->r, p, lot->asked[i]->bucket, lot->asked[i]->cursor, SCAN_COUNT);
    }
    proved_piece_end(s->r, last - first + 1);
    return STORAGE_OK;
}

static enum storage_err take_steps(struct scanning *s)
{
    const struct reply *items = NULL;
    struct proved_piece piece;
    enum storage_err err = proved_take(s->r, &items, &piece);
    struct lot *lot = &s->lots[piece.partition];
    for (size_t i = 0; err == STORAGE_OK && items != NULL && i < lot->n_asked; i++) {
        err = take_step(s, piece.partition, lot->asked[i], &items[i]);
    }
    return err;
}

/* All partitions in step: what one answers is worked on here while Redis is at the next. */
static enum storage_err read_large(struct scanning *s)
{
    struct proved_read *r = s->r;
    enum storage_err err = STORAGE_OK;
    bool more = true;
    while (err == STORAGE_OK && !r->stale && more) {
        for (unsigned p = 0; err == STORAGE_OK && p < r->core->partitions.n; p++) {
            err = ask_steps(s, p);
        }
        more = r->next < r->n_pieces;
        if (err == STORAGE_OK && !proved_send(r)) {
            err = STORAGE_NOMEM;
        }
        while (err == STORAGE_OK && r->next < r->n_pieces) {
            err = take_steps(s);
        }
    }
    return err;
}

/* ---- all ---- */

static void scanning_free(struct scanning *s)
{
    free(s->look.staged);
    for (size_t p = 0; p < PARTITIONS_MAX; p++) {
        free(s->lots[p].large);
        for (size_t i = 0; i < SLOTS; i++) {
            free(s->lots[p].slots[i].staged);
        }
    }
    pages_memory_release(&s->memory);
    free(s);
}

enum storage_err pages_scan_run(struct pages_scan *scan, struct proved_read *r, struct slice prefix)
{
    struct scanning *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return STORAGE_NOMEM;
    }
    s->scan = scan;
    s->r = r;
    s->prefix = prefix;
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        s->n_buckets = r->covers[p].n > s->n_buckets ? r->covers[p].n : s->n_buckets;
    }
    s->n_most = PRESENT_BYTES_MAX / (page_bits_size(s->n_buckets) + 1);
    s->n_most = s->n_most < PAGES_SCAN_MAX ? s->n_most : PAGES_SCAN_MAX;
    enum storage_err err = pages_memory_begin(&s->memory, r) ? STORAGE_OK : STORAGE_NOMEM;
    err = err == STORAGE_OK ? count_keys(r) : err;
    err = err == STORAGE_OK ? ask_looks(s) : err;
    err = err == STORAGE_OK ? add_recalled(s) : err; /* while Redis works */
    err = err == STORAGE_OK ? take_looks(s) : err;
    err = err == STORAGE_OK && !r->stale ? read_large(s) : err;
    scanning_free(s);
    return err;
}
