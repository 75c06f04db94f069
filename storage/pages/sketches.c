#include "storage/pages/sketches.h"

#include <stdlib.h>

#include "storage/pages/table.h"

/* Sketches in one turn of Redis's thread: 64 dense ones are 800 KB, copied in some 30 us. */
#define SKETCHES_AT_ONCE 64
#define SKETCHES_AHEAD   768 /* asked for and not answered: Redis buffers 9 MB for the replies */

/* What is known of a page of the walk. */
struct walk_page {
    size_t first_run, n_runs; /* its runs in walk->runs */
    struct cache_id name;     /* if it has runs: the name of what is remembered */
    bool unread;              /* nothing of the page need be asked for */
};

/* A walk over the keys of all pages: page by page, bucket by bucket. */
struct walk {
    struct proved_read *r;
    const struct sketched_page *pages;
    struct walk_page *about; /* owned array, filled up to the next page to be asked for */
    size_t n;
    struct remembered_runs runs; /* the runs of all pages, page after page */
    struct buffer texts;         /* sketches that were recalled */
    size_t page, bucket;         /* the next key to be asked for */
    size_t asked, taken;         /* how many keys were asked for, and how many replies taken */
    page_sketch_fn *take;
    void *data;
    struct hll sketch; /* what was read of page `at` */
    size_t at;         /* the page whose replies are being taken */
    struct hll run;    /* what was read of the run at hand of that page */
};

unsigned page_partition(const struct proved_read *r, struct slice page)
{
    uint64_t hash = page_hash(r->asked->site, page);
    return name_partition(&r->core->partitions, r->asked->site, page, hash);
}

static const struct cover *cover_of(const struct walk *walk, size_t page)
{
    return &walk->r->covers[walk->pages[page].partition];
}

static bool may_be_in(const struct sketched_page *page, size_t bucket)
{
    return page->present == NULL || page_bit(page->present, bucket);
}

/* The run of the page that has bucket @i of its cover; NULL: none has. */
static const struct remembered_run *run_of(const struct walk *walk, size_t page, size_t i)
{
    const struct walk_page *about = &walk->about[page];
    return about->n_runs == 0 ? NULL : run_at(&walk->runs.all[about->first_run], about->n_runs, i);
}

/* The next bucket of the page from @bucket on that must be read; cover->n: none. */
static size_t next_bucket(const struct walk *walk, size_t page, size_t bucket)
{
    const struct cover *cover = cover_of(walk, page);
    while (bucket < cover->n) {
        const struct remembered_run *run = run_of(walk, page, bucket);
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

static bool is_in_any(const struct sketched_page *page, size_t first, size_t end)
{
    while (first < end && !may_be_in(page, first)) {
        first++;
    }
    return first < end;
}

/* Recall what the run has of the page, if it is remembered. */
static void sketch_recall(struct walk *walk, size_t page, struct remembered_run *run)
{
    const struct walk_page *about = &walk->about[page];
    struct cache_id id = run_id(walk->r->core->cache, &about->name, cover_of(walk, page), run);
    run->text = walk->texts.n;
    run->recalled = proved_recall(
        walk->r, walk->pages[page].partition, run, &id, cache_append_to, &walk->texts);
    run->n_text = walk->texts.n - run->text;
}

/* Find the page's runs, but for those without a bucket that the page is in.  False: no memory. */
static bool sketch_find_runs(struct walk *walk, size_t page)
{
    struct proved_read *r = walk->r;
    struct walk_page *about = &walk->about[page];
    const struct slice *name_of = &walk->pages[page].page;
    unsigned partition = walk->pages[page].partition;
    const struct cover *cover = cover_of(walk, page);
    struct remembered_runs *runs = &walk->runs;
    struct buffer scratch;
    about->first_run = runs->n;
    if (!walk->pages[page].remember || !proved_may_recall(r, partition)) {
        return true;
    }
    buffer_init(&scratch);
    about->name =
        run_name(r->core->cache, &scratch, partition, KEY_UV, r->asked->site, &name_of, 1);
    bool ok = !scratch.failed &&
              runs_find(runs, r->zone, &r->known[partition].view, cover, 0, cover->n, false);
    buffer_release(&scratch);
    size_t kept = about->first_run;
    for (size_t i = about->first_run; ok && i < runs->n; i++) {
        struct remembered_run run = runs->all[i];
        if (is_in_any(&walk->pages[page], run.first, run.first + run.n)) {
            sketch_recall(walk, page, &run);
            runs->all[kept++] = run;
        }
    }
    runs->n = kept;
    about->n_runs = kept - about->first_run;
    return ok && !walk->texts.failed;
}

/* ---- asking ---- */

/* Begin with the next page: find its runs.  False: no memory. */
static bool begin_page(struct walk *walk)
{
    struct proved_read *r = walk->r;
    struct walk_page *about = &walk->about[walk->page];
    if (!sketch_find_runs(walk, walk->page)) {
        return false;
    }
    about->unread = r->known[walk->pages[walk->page].partition].seen &&
                    next_bucket(walk, walk->page, 0) == cover_of(walk, walk->page)->n;
    return true;
}

/* Ask for one piece: the next keys of one page.  The piece's buckets reach up to the next bucket
 * that must be read.  False: no memory. */
static bool ask_piece(struct walk *walk)
{
    struct proved_read *r = walk->r;
    unsigned partition = walk->pages[walk->page].partition;
    const struct cover *cover = cover_of(walk, walk->page);
    size_t first = walk->bucket;
    if (!proved_piece(r, partition, cover, NULL, first)) { /* walk->runs moves when it grows */
        return false;
    }
    size_t at = next_bucket(walk, walk->page, first);
    for (size_t n = 0; n < SKETCHES_AT_ONCE && at < cover->n; n++) {
        struct key key;
        key_bucket(&key, r->core->partitions.tag[partition], KEY_UV, r->asked->site,
            cover->buckets[at], walk->pages[walk->page].page);
        proved_command(r, "GET", 1, 0);
        proved_key(r, &key);
        walk->asked++;
        at = next_bucket(walk, walk->page, at + 1);
    }
    proved_piece_end(r, at - first);
    walk->bucket = at == cover->n ? 0 : at;
    walk->page += at == cover->n;
    return true;
}

/* Ask for pieces until enough keys are under way. */
static enum storage_err ask_pages(struct walk *walk)
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
    return proved_send(walk->r) ? STORAGE_OK : STORAGE_NOMEM;
}

/* ---- taking ---- */

/* All of @run was read, the last bucket in the newest reply: remember it.  (Earlier replies have
 * told in which buckets the page is.  They need the same proof, which proved_keep() sees to.) */
static void finish_sketch_run(struct walk *walk, const struct remembered_run *run)
{
    struct proved_read *r = walk->r;
    const struct cover *cover = cover_of(walk, walk->at);
    struct cache_id id = run_id(r->core->cache, &walk->about[walk->at].name, cover, run);
    uint8_t text[HLL_DENSE_SIZE];
    proved_keep(
        r, walk->pages[walk->at].partition, cover, run, &id, text, hll_encode(&walk->run, text));
    hll_unite(&walk->sketch, &walk->run);
}

/* Take the sketch of bucket @i, into the run at hand if the bucket is in one. */
static bool take_bucket(struct walk *walk, size_t i, const struct reply *reply)
{
    const struct remembered_run *run = run_of(walk, walk->at, i);
    struct hll *to = run != NULL ? &walk->run : &walk->sketch;
    if (run != NULL && next_bucket(walk, walk->at, run->first) == i) {
        hll_clear(&walk->run);
    }
    bool good = reply->type == REPLY_NIL ||
                (reply->type == REPLY_TEXT && hll_merge(to, reply->text.p, reply->text.n));
    if (good && run != NULL && next_bucket(walk, walk->at, i + 1) >= run->first + run->n) {
        finish_sketch_run(walk, run);
    }
    return good;
}

/* The page is read: add its recalled runs, and hand its sketch out. */
static enum storage_err finish_page(struct walk *walk)
{
    const struct walk_page *about = &walk->about[walk->at];
    for (size_t r = about->first_run; r < about->first_run + about->n_runs; r++) {
        const struct remembered_run *run = &walk->runs.all[r];
        if (run->recalled && /* this process has encoded the text, so it is not refused */
            !hll_merge(&walk->sketch, walk->texts.p + run->text, run->n_text)) {
            return proved_foreign(walk->r);
        }
    }
    walk->take(walk->data, walk->at++, &walk->sketch);
    hll_clear(&walk->sketch);
    return STORAGE_OK;
}

/* Take the reply to one piece, whose sketches are of page `at`. */
static enum storage_err take_piece(struct walk *walk)
{
    const struct reply *items = NULL;
    struct proved_piece piece;
    enum storage_err err = proved_take(walk->r, &items, &piece);
    walk->taken += piece.n_commands;
    if (err != STORAGE_OK || items == NULL) {
        return err;
    }
    size_t bucket = piece.first;
    for (size_t i = 0; i < piece.n_commands; i++) {
        bucket = next_bucket(walk, walk->at, bucket);
        if (!take_bucket(walk, bucket++, &items[i])) {
            return proved_foreign(walk->r);
        }
    }
    return piece.first + piece.n == cover_of(walk, walk->at)->n ? finish_page(walk) : STORAGE_OK;
}

static enum storage_err walk_all(struct walk *walk)
{
    struct proved_read *r = walk->r;
    enum storage_err err = STORAGE_OK;
    while (err == STORAGE_OK && !r->stale && walk->at < walk->n) {
        /* Send many keys at once, not one whenever a reply has come. */
        if (walk->page < walk->n && walk->asked - walk->taken <= SKETCHES_AHEAD / 2) {
            err = ask_pages(walk);
        }
        if (err == STORAGE_OK) {
            err = walk->about[walk->at].unread ? finish_page(walk) : take_piece(walk);
        }
    }
    return err;
}

enum storage_err page_sketches_read(struct proved_read *r, const struct sketched_page *pages,
    size_t n, page_sketch_fn *take, void *data)
{
    struct walk *walk = malloc(sizeof(*walk));
    struct walk_page *about = calloc(n + 1, sizeof(*about));
    if (walk == NULL || about == NULL) {
        free(walk);
        free(about);
        return STORAGE_NOMEM;
    }
    walk->r = r;
    walk->pages = pages;
    walk->about = about;
    walk->n = n;
    walk->runs = (struct remembered_runs){0};
    buffer_init(&walk->texts);
    walk->page = walk->bucket = walk->asked = walk->taken = walk->at = 0;
    walk->take = take;
    walk->data = data;
    hll_clear(&walk->sketch);
    enum storage_err err = walk_all(walk);
    atomic_fetch_add(&r->core->stats.query_keys, (int64_t)walk->taken);
    buffer_release(&walk->texts);
    runs_release(&walk->runs);
    free(about);
    free(walk);
    return err;
}
