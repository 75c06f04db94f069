#include "storage/pages/sketches.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/read/run.h"

/* In one turn of Redis's thread: 64 dense sketches are 800 KB, which it copies in some 30 us. */
#define SKETCHES_AT_ONCE 64
#define SKETCHES_AHEAD   768 /* asked for and not answered: 9 MB that Redis buffers for us */

/* Buckets [first, first + n) of a page's cover that are remembered as one. */
struct sketch_run {
    size_t first, n;
    struct cache_id id;
    enum proof proof; /* by the plan */
    bool recalled;
    size_t text, n_text; /* of what was recalled, in walk->texts */
};

struct walk_page {
    unsigned partition;
    size_t first_run, n_runs; /* in walk->runs */
    bool unread;              /* nothing of it need be asked for */
};

/* A walk over the keys of all pages: page by page, bucket by bucket. */
struct walk {
    struct window_read *w;
    const struct sketched_page *pages;
    struct walk_page *about; /* owned: of each page up to the next one to be asked for */
    size_t n;
    struct sketch_run *runs; /* owned: of all pages */
    size_t n_runs, runs_capacity;
    struct buffer texts;
    size_t page, bucket; /* the next key to be asked for */
    size_t asked, taken; /* keys */
    page_sketch_fn *take;
    void *data;
    struct hll sketch; /* of the page that is being read */
    size_t at;         /* that page */
    struct hll run;    /* of the run of it that is being read */
};

unsigned page_partition(const struct window_read *w, struct slice page)
{
    return partition_of(&w->core->partitions, page_hash(w->asked->site, page));
}

static const struct cover *cover_of(const struct walk *walk, size_t page)
{
    return &walk->w->covers[walk->about[page].partition];
}

static bool may_be_in(const struct sketched_page *page, size_t bucket)
{
    return page->present == NULL || (page->present[bucket / 8] >> (bucket & 7) & 1) != 0;
}

/* The run of the page that bucket @i of its cover is in; NULL: none. */
static const struct sketch_run *run_of(const struct walk *walk, size_t page, size_t i)
{
    const struct walk_page *about = &walk->about[page];
    for (size_t r = about->first_run; r < about->first_run + about->n_runs; r++) {
        if (i >= walk->runs[r].first && i - walk->runs[r].first < walk->runs[r].n) {
            return &walk->runs[r];
        }
    }
    return NULL;
}

/* The next bucket of the page from @bucket on that must be read; cover->n: none. */
static size_t next_bucket(const struct walk *walk, size_t page, size_t bucket)
{
    const struct cover *cover = cover_of(walk, page);
    while (bucket < cover->n) {
        const struct sketch_run *run = run_of(walk, page, bucket);
        if (run != NULL && run->recalled) {
            bucket = run->first + run->n;
        } else if (may_be_in(&walk->pages[page], bucket)) {
            break;
        } else {
            bucket++;
        }
    }
    return bucket;
}

/* ---- what is remembered ---- */

static void copy_text(void *data, const void *value, size_t n)
{
    buffer_append(data, value, n);
}

static bool is_in_any(const struct sketched_page *page, size_t first, size_t end)
{
    while (first < end && !may_be_in(page, first)) {
        first++;
    }
    return first < end;
}

/* A run of the page that has it: is it remembered? */
static bool add_run(
    struct walk *walk, const struct cache_id *name, size_t page, size_t first, size_t end)
{
    struct window_read *w = walk->w;
    struct walk_page *about = &walk->about[page];
    if (!array_reserve(&walk->runs, &walk->runs_capacity, walk->n_runs, sizeof(*walk->runs))) {
        return false;
    }
    struct sketch_run *run = &walk->runs[walk->n_runs++];
    *run = (struct sketch_run){.first = first, .n = end - first, .text = walk->texts.n};
    const struct partition_view *view = &w->known[about->partition].view;
    run->proof = closed_proof(w->zone, view, cover_of(walk, page)->buckets[first]);
    run->id = closed_run_id(w->core->cache, name, cover_of(walk, page), first, end - first);
    run->recalled =
        closed_recall(w->core->cache, &run->id, view, run->proof, copy_text, &walk->texts);
    run->n_text = walk->texts.n - run->text;
    about->n_runs++;
    if (run->recalled) {
        window_recalled(w, about->partition, run->proof);
    }
    atomic_fetch_add(run->recalled ? &w->core->stats.cache_hits : &w->core->stats.cache_misses, 1);
    return !walk->texts.failed;
}

static bool find_runs(struct walk *walk, size_t page)
{
    struct window_read *w = walk->w;
    struct walk_page *about = &walk->about[page];
    const struct slice *name_of = &walk->pages[page].page;
    const struct cover *cover = cover_of(walk, page);
    const struct partition_view *view = &w->known[about->partition].view;
    struct buffer scratch;
    bool ok = true;
    about->first_run = walk->n_runs;
    if (!walk->pages[page].remember || !window_may_recall(w, about->partition)) {
        return true;
    }
    buffer_init(&scratch);
    struct cache_id name = closed_name(
        w->core->cache, &scratch, about->partition, KEY_UV, w->asked->site, &name_of, 1);
    ok = !scratch.failed;
    buffer_release(&scratch);
    for (size_t i = 0; ok && i < cover->n;) {
        size_t end = closed_run_end(w->zone, view, cover, i, cover->n);
        if (end > i && is_in_any(&walk->pages[page], i, end)) {
            ok = add_run(walk, &name, page, i, end);
        }
        i = end > i ? end : i + 1;
    }
    return ok;
}

/* ---- asking ---- */

/* The page that comes next. */
static bool begin_page(struct walk *walk)
{
    struct window_read *w = walk->w;
    struct walk_page *about = &walk->about[walk->page];
    about->partition = page_partition(w, walk->pages[walk->page].page);
    if (!find_runs(walk, walk->page)) {
        return false;
    }
    about->unread = w->known[about->partition].seen &&
                    next_bucket(walk, walk->page, 0) == cover_of(walk, walk->page)->n;
    return true;
}

/* One piece: the next keys of one page.  Its buckets reach up to the next one to be read. */
static bool ask_piece(struct walk *walk)
{
    struct window_read *w = walk->w;
    unsigned partition = walk->about[walk->page].partition;
    const struct cover *cover = cover_of(walk, walk->page);
    size_t first = walk->bucket;
    if (!window_piece_begin(w, partition, first, 0)) {
        return false;
    }
    size_t at = next_bucket(walk, walk->page, first);
    for (size_t n = 0; n < SKETCHES_AT_ONCE && at < cover->n; n++) {
        struct key key;
        key_bucket(&key, w->core->partitions.tag[partition], KEY_UV, w->asked->site,
            cover->buckets[at], walk->pages[walk->page].page);
        window_piece_put(w, "GET", &key, NULL, NULL);
        walk->asked++;
        at = next_bucket(walk, walk->page, at + 1);
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
        if (walk->bucket == 0 && !begin_page(walk)) {
            return STORAGE_NOMEM;
        }
        if (walk->about[walk->page].unread) {
            walk->page++;
        } else if (!ask_piece(walk)) {
            return STORAGE_NOMEM;
        }
    }
    return window_send(walk->w) ? STORAGE_OK : STORAGE_NOMEM;
}

/* ---- taking ---- */

/* All of @run was read, the last of it in the newest reply.  In which buckets the page is, replies
 * before have told: so the proof must have been the same in them, too. */
static void finish_run(struct walk *walk, const struct sketch_run *run)
{
    const struct window_read *w = walk->w;
    unsigned partition = walk->about[walk->at].partition;
    const struct partition_known *known = &w->known[partition];
    if ((known->changed >> run->proof & 1) == 0 &&
        closed_run_holds(
            w->zone, &known->view, run->proof, &w->covers[partition], run->first, run->n)) {
        uint8_t text[HLL_DENSE_SIZE];
        cache_put(w->core->cache, &run->id, closed_ver(&known->view, run->proof), text,
            hll_encode(&walk->run, text));
    }
    hll_unite(&walk->sketch, &walk->run);
}

/* Bucket @i's sketch; into the run that it belongs to, if it does. */
static bool take_bucket(struct walk *walk, size_t i, const struct reply *reply)
{
    const struct sketch_run *run = run_of(walk, walk->at, i);
    struct hll *to = run != NULL ? &walk->run : &walk->sketch;
    if (run != NULL && next_bucket(walk, walk->at, run->first) == i) {
        hll_clear(&walk->run);
    }
    bool good = reply->type == REPLY_NIL ||
                (reply->type == REPLY_TEXT && hll_merge(to, reply->text.p, reply->text.n));
    if (good && run != NULL && next_bucket(walk, walk->at, i + 1) >= run->first + run->n) {
        finish_run(walk, run);
    }
    return good;
}

/* All of the page is there. */
static enum storage_err finish_page(struct walk *walk)
{
    const struct walk_page *about = &walk->about[walk->at];
    for (size_t r = about->first_run; r < about->first_run + about->n_runs; r++) {
        const struct sketch_run *run = &walk->runs[r];
        if (run->recalled && /* it was encoded here: it is not refused */
            !hll_merge(&walk->sketch, walk->texts.p + run->text, run->n_text)) {
            return window_foreign(walk->w);
        }
    }
    walk->take(walk->data, walk->at++, &walk->sketch);
    hll_clear(&walk->sketch);
    return STORAGE_OK;
}

/* One piece's sketches into the one that is being read. */
static enum storage_err take_piece(struct walk *walk)
{
    const struct reply *items = NULL;
    struct window_piece piece;
    enum storage_err err = window_take(walk->w, &items, &piece);
    walk->taken += piece.n_commands;
    if (err != STORAGE_OK || items == NULL) {
        return err;
    }
    size_t bucket = piece.first;
    for (size_t i = 0; i < piece.n_commands; i++) {
        bucket = next_bucket(walk, walk->at, bucket);
        if (!take_bucket(walk, bucket++, &items[i])) {
            return window_foreign(walk->w);
        }
    }
    return piece.first + piece.n == cover_of(walk, walk->at)->n ? finish_page(walk) : STORAGE_OK;
}

static enum storage_err walk_all(struct walk *walk)
{
    struct window_read *w = walk->w;
    enum storage_err err = STORAGE_OK;
    while (err == STORAGE_OK && !w->stale && walk->at < walk->n) {
        /* send much at once, not a key whenever one has come */
        if (walk->page < walk->n && walk->asked - walk->taken <= SKETCHES_AHEAD / 2) {
            err = ask(walk);
        }
        if (err == STORAGE_OK) {
            err = walk->about[walk->at].unread ? finish_page(walk) : take_piece(walk);
        }
    }
    return err;
}

enum storage_err page_sketches_read(struct window_read *w, const struct sketched_page *pages,
    size_t n, page_sketch_fn *take, void *data)
{
    struct walk *walk = malloc(sizeof(*walk));
    struct walk_page *about = calloc(n + 1, sizeof(*about));
    if (walk == NULL || about == NULL) {
        free(walk);
        free(about);
        return STORAGE_NOMEM;
    }
    walk->w = w;
    walk->pages = pages;
    walk->about = about;
    walk->n = n;
    walk->runs = NULL;
    walk->n_runs = walk->runs_capacity = 0;
    buffer_init(&walk->texts);
    walk->page = walk->bucket = walk->asked = walk->taken = walk->at = 0;
    walk->take = take;
    walk->data = data;
    hll_clear(&walk->sketch);
    enum storage_err err = walk_all(walk);
    atomic_fetch_add(&w->core->stats.query_keys, (int64_t)walk->taken);
    buffer_release(&walk->texts);
    free(walk->runs);
    free(about);
    free(walk);
    return err;
}
