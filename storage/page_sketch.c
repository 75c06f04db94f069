#include "storage/page_sketch.h"

#include <stdlib.h>

/* In one turn of Redis's thread: 64 dense sketches are 800 KB, which it copies in some 30 us. */
#define SKETCHES_AT_ONCE 64
#define SKETCHES_AHEAD   768 /* asked for and not answered: 9 MB that Redis buffers for us */

/* A walk over the keys of all pages: page by page, bucket by bucket. */
struct walk {
    struct window_read *w;
    const struct sketched_page *pages;
    size_t n;
    size_t page, bucket; /* the next key to be asked for */
    size_t asked, taken; /* keys */
    page_sketch_fn *take;
    void *data;
    struct hll sketch; /* of the page that is being read */
    size_t at;         /* that page */
};

unsigned page_partition(const struct window_read *w, struct slice page)
{
    return partition_of(&w->core->partitions, page_hash(w->asked->site, page));
}

static const struct cover *cover_of(const struct walk *walk, size_t page, unsigned *ret_partition)
{
    *ret_partition = page_partition(walk->w, walk->pages[page].page);
    return &walk->w->covers[*ret_partition];
}

/* The next bucket of the page from @bucket on that must be read; cover->n: none. */
static size_t next_bucket(
    const struct sketched_page *page, const struct cover *cover, size_t bucket)
{
    while (bucket < cover->n && page->present != NULL &&
           (page->present[bucket / 8] >> (bucket & 7) & 1) == 0) {
        bucket++;
    }
    return bucket;
}

/* One piece: the next keys of one page.  Its buckets reach up to the next one to be read. */
static bool ask_piece(struct walk *walk)
{
    struct window_read *w = walk->w;
    const struct sketched_page *page = &walk->pages[walk->page];
    unsigned partition;
    const struct cover *cover = cover_of(walk, walk->page, &partition);
    size_t first = walk->bucket;
    if (!window_piece_begin(w, partition, first, 0)) {
        return false;
    }
    size_t at = next_bucket(page, cover, first);
    for (size_t n = 0; n < SKETCHES_AT_ONCE && at < cover->n; n++) {
        struct key key;
        key_bucket(&key, w->core->partitions.tag[partition], KEY_UV, w->asked->site,
            cover->buckets[at], page->page);
        window_piece_put(w, "GET", &key, NULL, NULL);
        walk->asked++;
        at = next_bucket(page, cover, at + 1);
    }
    w->pieces[w->n_pieces - 1].n = at - first;
    window_piece_end(w);
    walk->bucket = at == cover->n ? 0 : at;
    walk->page += at == cover->n;
    return true;
}

/* Write pieces, until enough is under way. */
static enum storage_err ask(struct walk *walk)
{
    while (walk->page < walk->n && walk->asked - walk->taken < SKETCHES_AHEAD) {
        if (!ask_piece(walk)) {
            return STORAGE_NOMEM;
        }
    }
    return window_send(walk->w) ? STORAGE_OK : STORAGE_NOMEM;
}

/* One piece's sketches into the one that is being read. */
static enum storage_err take_piece(struct walk *walk)
{
    const struct reply *items = NULL;
    struct window_piece piece;
    unsigned partition;
    enum storage_err err = window_take(walk->w, &items, &piece);
    walk->taken += piece.n_commands;
    for (size_t i = 0; err == STORAGE_OK && items != NULL && i < piece.n_commands; i++) {
        bool good = items[i].type == REPLY_NIL ||
                    (items[i].type == REPLY_TEXT &&
                        hll_merge(&walk->sketch, items[i].text.p, items[i].text.n));
        if (!good) {
            return window_foreign(walk->w);
        }
    }
    if (err == STORAGE_OK && piece.first + piece.n == cover_of(walk, walk->at, &partition)->n) {
        walk->take(walk->data, walk->at++, &walk->sketch);
        hll_clear(&walk->sketch);
    }
    return err;
}

enum storage_err page_sketches_read(struct window_read *w, const struct sketched_page *pages,
    size_t n, page_sketch_fn *take, void *data)
{
    struct walk *walk = malloc(sizeof(*walk));
    if (walk == NULL) {
        return STORAGE_NOMEM;
    }
    walk->w = w;
    walk->pages = pages;
    walk->n = n;
    walk->page = walk->bucket = walk->asked = walk->taken = walk->at = 0;
    walk->take = take;
    walk->data = data;
    hll_clear(&walk->sketch);
    enum storage_err err = STORAGE_OK;
    while (err == STORAGE_OK && !w->stale && walk->at < n) {
        /* send much at once, not a key whenever one has come */
        if (walk->page < n && walk->asked - walk->taken <= SKETCHES_AHEAD / 2) {
            err = ask(walk);
        }
        err = err == STORAGE_OK ? take_piece(walk) : err;
    }
    atomic_fetch_add(&w->core->stats.query_keys, (int64_t)walk->taken);
    free(walk);
    return err;
}
