#include "storage/pages/scan.h"

#include <stdlib.h>

#include "storage/pages/gather.h"
#include "storage/pages/table.h"
#include "storage/read/listed_keys.h"

/* The first look.  With Redis's default settings a hash or sorted set of at most 128 short names
 * comes as a whole, whatever COUNT says; of a larger one about COUNT entries come. */
#define LOOK_COUNT SLICE("128")
#define LOOK_WORK  32 /* hashes in one piece, a sorted set counts twice: 2 ms if all are large */

#define PIECES_A_SEND 16 /* Redis answers these pieces while the next ones are written */

#define SCAN_COUNT SLICE("250") /* entries that a step of a scan looks at */
#define SCAN_WORK  4            /* steps in one piece, a sorted set counts twice: about 0.5 ms */
#define SLOTS      16           /* buckets of a partition that are scanned at the same time */

/* A page has a bit for each bucket of the window.  All bits may take so many bytes: four million
 * pages need them in 256 buckets. */
#define PRESENT_BYTES_MAX (PAGES_SCAN_MAX / 8 * 256)

/* The large buckets of one partition, and their scans. */
struct lot {
    size_t *large; /* owned: buckets that the first look did not bring as a whole */
    size_t n_large, large_capacity;
    size_t next; /* the first of these buckets that no slot has taken */
    struct slot slots[SLOTS];
    struct slot *asked[SLOTS]; /* the slots in the piece under way, in the order of its commands */
    size_t n_asked;
};

struct scanning {
    struct gathering g;
    struct slot look;  /* the bucket of the first look that is being taken */
    struct lot lots[]; /* an element for each partition */
};

void pages_scan_clear(struct pages_scan *scan)
{
    page_sums_clear(&scan->sums);
    scan->capped.n = 0;
    scan->chosen = false;
    scan->buckets_read = 0;
}

void pages_scan_release(struct pages_scan *scan)
{
    page_sums_release(&scan->sums);
    capped_buckets_release(&scan->capped);
}

bool pages_scan_choose(struct pages_scan *scan, struct slice site, struct slice page)
{
    uint32_t ignored;
    scan->chosen = true;
    return page_sums_find(&scan->sums, site, page, true, &ignored);
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
    const struct scanning *s, unsigned p, size_t bucket, const char *cursor, struct slice count)
{
    struct proved_read *r = s->g.r;
    enum key_kind kind = s->g.memory.kind;
    struct key key;
    key_bucket(&key, r->core->partitions.tag[p], kind, r->asked->site, r->covers[p].buckets[bucket],
        SLICE(""));
    proved_command(r, is_hash(r, p, bucket) ? "HSCAN" : "ZSCAN", 1, 3);
    proved_key(r, &key);
    proved_word(r, (struct slice){cursor, strlen(cursor)});
    proved_word(r, SLICE("COUNT"));
    proved_word(r, count);
}

/* The next bucket from @bucket on that must be read; the cover's n: none. */
static size_t next_unread(const struct scanning *s, unsigned p, size_t bucket)
{
    return runs_next_unread(&s->g.memory.of[p].runs, bucket);
}

static bool begin_piece(struct scanning *s, unsigned p, size_t first, size_t end)
{
    const struct cover *cover = &s->g.r->covers[p];
    return proved_plain(s->g.r, p, cover, &s->g.memory.of[p].runs, first, end - first);
}

/* The end of the piece of the first look that begins with bucket @first. */
static size_t look_end(const struct scanning *s, unsigned p, size_t first)
{
    const struct proved_read *r = s->g.r;
    size_t end = first;
    size_t work = 0;
    for (size_t i = first; i < r->covers[p].n && work < LOOK_WORK; i = next_unread(s, p, end)) {
        work += work_of(r, p, i);
        end = i + 1;
    }
    return end;
}

/* Ask for one piece of the first look, from *bucket on, and move *bucket behind the piece.  If no
 * bucket must be read, the piece asks for the state's ids alone. */
static bool ask_look(struct scanning *s, unsigned p, size_t *bucket)
{
    size_t first = *bucket;
    size_t end = look_end(s, p, first);
    if (!begin_piece(s, p, first, end)) {
        return false;
    }
    for (; *bucket < end; *bucket = next_unread(s, p, *bucket + 1)) {
        put_scan(s, p, *bucket, "0", LOOK_COUNT);
    }
    proved_piece_end(s->g.r, end - first);
    return true;
}

/* Count the keys of the plan.  That comes before anything is asked, so that no reply is under way
 * if there are too many keys. */
static enum storage_err count_keys(
    struct proved_read *r, enum key_kind kind, const struct part_set *parts)
{
    enum storage_err err = STORAGE_OK;
    const struct slice *whole_site = &SLICE("");
    listed_keys_clear(r);
    for (unsigned p = 0; err == STORAGE_OK && p < r->core->partitions.n; p++) {
        if (part_set_has(parts, p)) {
            err = listed_keys_add(r, p, kind, &whole_site, 1, &r->covers[p]);
        }
    }
    return err;
}

/* Look at all buckets that are not remembered, in all partitions at once.  A partition of which
 * everything is remembered is asked for its ids alone. */
static enum storage_err ask_looks(struct scanning *s)
{
    struct proved_read *r = s->g.r;
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        size_t bucket = next_unread(s, p, 0);
        if (!part_set_has(&s->g.parts, p)) {
            continue;
        }
        do {
            if (!ask_look(s, p, &bucket)) {
                return STORAGE_NOMEM;
            }
        } while (bucket < r->covers[p].n);
        if (r->n_pieces - r->n_sent >= PIECES_A_SEND && !proved_send(r)) {
            return STORAGE_NOMEM;
        }
    }
    return proved_send(r) ? STORAGE_OK : STORAGE_NOMEM;
}

/* Take the reply about one bucket of the first look: it has the whole bucket, or a large bucket is
 * noted. */
static enum storage_err take_look(
    struct scanning *s, unsigned p, size_t bucket, const struct reply *step)
{
    struct lot *lot = &s->lots[p];
    char cursor[REPLY_CURSOR];
    if (reply_scan(step, cursor) == NULL) {
        return proved_foreign(s->g.r);
    }
    if (strcmp(cursor, "0") == 0) {
        slot_begin(&s->g, p, &s->look, bucket);
        return slot_take_step(&s->g, p, &s->look, step);
    }
    if (!ARRAY_RESERVE(lot, large)) {
        return STORAGE_NOMEM;
    }
    lot->large[lot->n_large++] = bucket;
    return STORAGE_OK;
}

static enum storage_err take_looks(struct scanning *s)
{
    struct proved_read *r = s->g.r;
    enum storage_err err = STORAGE_OK;
    while (err == STORAGE_OK && r->next < r->n_pieces) { /* if stale, too, to learn all states */
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

/* Choose the slots of partition @p that are scanned next.  Their buckets are [*ret_first,
 * *ret_last]. */
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
            slot_begin(&s->g, p, slot, lot->large[lot->next++]);
        }
        if (slot->busy) {
            work += work_of(s->g.r, p, slot->bucket);
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
    if (!begin_piece(s, p, first, last + 1)) {
        return STORAGE_NOMEM;
    }
    for (size_t i = 0; i < lot->n_asked; i++) {
        put_scan(s, p, lot->asked[i]->bucket, lot->asked[i]->cursor, SCAN_COUNT);
    }
    proved_piece_end(s->g.r, last - first + 1);
    return STORAGE_OK;
}

static enum storage_err take_steps(struct scanning *s)
{
    const struct reply *items = NULL;
    struct proved_piece piece;
    enum storage_err err = proved_take(s->g.r, &items, &piece);
    struct lot *lot = &s->lots[piece.partition];
    for (size_t i = 0; err == STORAGE_OK && items != NULL && i < lot->n_asked; i++) {
        err = slot_take_step(&s->g, piece.partition, lot->asked[i], &items[i]);
    }
    return err;
}

/* Scan the large buckets of all partitions, a piece of each by turns: while the reply about one is
 * worked on, Redis works on the next one. */
static enum storage_err read_large(struct scanning *s)
{
    struct proved_read *r = s->g.r;
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
    slot_release(&s->look);
    for (size_t p = 0; p < s->g.r->core->partitions.n; p++) {
        free(s->lots[p].large);
        for (size_t i = 0; i < SLOTS; i++) {
            slot_release(&s->lots[p].slots[i]);
        }
    }
    pages_memory_release(&s->g.memory);
    free(s);
}

enum storage_err pages_scan_run(
    struct pages_scan *scan, struct proved_read *r, const struct scan_wanted *wanted)
{
    struct scanning *s = calloc(1, sizeof(*s) + r->core->partitions.n * sizeof(s->lots[0]));
    if (s == NULL) {
        return STORAGE_NOMEM;
    }
    s->g.r = r;
    s->g.sums = &scan->sums;
    s->g.chosen = scan->chosen;
    s->g.class = wanted->class;
    s->g.prefix = wanted->prefix;
    s->g.parts = wanted->parts;
    s->g.capped = &scan->capped;
    for (unsigned p = 0; p < r->core->partitions.n; p++) {
        s->g.n_buckets = r->covers[p].n > s->g.n_buckets ? r->covers[p].n : s->g.n_buckets;
    }
    s->g.n_most = PRESENT_BYTES_MAX / (page_bits_size(s->g.n_buckets) + 1);
    s->g.n_most = s->g.n_most < PAGES_SCAN_MAX ? s->g.n_most : PAGES_SCAN_MAX;
    enum storage_err err =
        pages_memory_begin(&s->g.memory, r, wanted->kind, &s->g.parts) ? STORAGE_OK : STORAGE_NOMEM;
    err = err == STORAGE_OK ? count_keys(r, wanted->kind, &s->g.parts) : err;
    err = err == STORAGE_OK ? ask_looks(s) : err;
    err = err == STORAGE_OK ? gathering_add_recalled(&s->g) : err; /* Redis works meanwhile */
    err = err == STORAGE_OK ? take_looks(s) : err;
    err = err == STORAGE_OK && !r->stale ? read_large(s) : err;
    kept_parts_keep(&s->g.memory.kept); /* also if the reading has failed later */
    scan->buckets_read += s->g.buckets_read;
    scanning_free(s);
    return err;
}
