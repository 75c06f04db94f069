#include "storage/read/run.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/time/units.h"

/* ---- proofs ---- */

enum proof proof_of(
    const struct zone *zone, const struct partition_view *view, struct bucket bucket)
{
    bool minute = bucket.level == LEVEL_MINUTE;
    struct bucket coarse = minute ? bucket_at(zone, LEVEL_HOUR, bucket.start_s) : bucket;
    if (closed_for_readers(&view->state, coarse)) {
        return PROOF_VER;
    }
    return minute && bucket.end_s <= view->over_s ? PROOF_OVER : PROOF_NONE;
}

const struct ver *proof_ver(const struct partition_view *view, enum proof proof)
{
    static const struct ver none = {.n = 0};
    return !view->known          ? &none
           : proof == PROOF_VER  ? &view->ver
           : proof == PROOF_OVER ? &view->over
           : proof == PROOF_FOLD ? &view->fold
                                 : &none;
}

bool proof_is_steady(const struct partition_view *view, enum proof proof, int64_t now_ms)
{
    bool is_new = now_ms - view->seen_ms < FOLD_STEADY_MS;
    return proof == PROOF_VER ||
           (proof == PROOF_FOLD ? view->fold_held && is_new : view->over_held);
}

bool proofs_same(
    unsigned proofs, const struct partition_view *planned, const struct partition_view *now)
{
    return ((proofs >> PROOF_VER & 1) == 0 || ver_equal(&planned->ver, &now->ver)) &&
           ((proofs >> PROOF_OVER & 1) == 0 || ver_equal(&planned->over, &now->over)) &&
           ((proofs >> PROOF_FOLD & 1) == 0 || ver_equal(&planned->fold, &now->fold));
}

/* ---- runs ---- */

void runs_release(struct remembered_runs *runs)
{
    free(runs->all);
    *runs = (struct remembered_runs){0};
}

struct remembered_run *runs_add(struct remembered_runs *runs, struct remembered_run run)
{
    if (!array_reserve(&runs->all, &runs->capacity, runs->n, sizeof(*runs->all))) {
        return NULL;
    }
    runs->all[runs->n] = run;
    return &runs->all[runs->n++];
}

/* By what the buckets of a cover are put into runs; see runs_find(). */
struct finding {
    const struct zone *zone;
    const struct partition_view *view;
    bool open;
};

static enum proof proof_in(const struct finding *f, struct bucket bucket)
{
    enum proof proof = proof_of(f->zone, f->view, bucket);
    bool is_open = f->open && f->view->fold.n > 0 && bucket.level == LEVEL_MINUTE;
    return proof == PROOF_NONE && is_open ? PROOF_FOLD : proof;
}

/* The end of the run, of proof @proof, that begins with bucket @i: the first bucket behind it that
 * is of another level or proof, or lies behind a gap; at most @end. */
static size_t run_end(
    const struct finding *f, const struct cover *cover, enum proof proof, size_t i, size_t end)
{
    const struct bucket *buckets = cover->buckets;
    size_t at = i + 1;
    while (at < end && buckets[at].level == buckets[i].level &&
           buckets[at].start_s == buckets[at - 1].end_s && proof_in(f, buckets[at]) == proof) {
        at++;
    }
    return at;
}

bool runs_find(struct remembered_runs *runs, const struct zone *zone,
    const struct partition_view *view, const struct cover *cover, size_t first, size_t end,
    bool open)
{
    const struct finding finding = {zone, view, open};
    for (size_t i = first; i < end;) {
        enum proof proof = proof_in(&finding, cover->buckets[i]);
        if (proof == PROOF_NONE) {
            i++;
            continue;
        }
        size_t next = run_end(&finding, cover, proof, i, end);
        struct remembered_run run = {.first = i, .n = next - i, .proof = proof};
        if (runs_add(runs, run) == NULL) {
            return false;
        }
        i = next;
    }
    return true;
}

struct remembered_run *run_at(struct remembered_run *runs, size_t n, size_t i)
{
    size_t low = 0;
    size_t high = n; /* runs before low end by bucket i, and runs from high on begin behind it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (i < runs[middle].first) {
            high = middle;
        } else if (i - runs[middle].first >= runs[middle].n) {
            low = middle + 1;
        } else {
            return &runs[middle];
        }
    }
    return NULL;
}

size_t runs_next_unread(const struct remembered_runs *runs, size_t i)
{
    const struct remembered_run *run = NULL;
    while ((run = run_at(runs->all, runs->n, i)) != NULL && run->recalled) {
        i = run->first + run->n;
    }
    return i;
}

bool run_holds(const struct remembered_run *run, const struct zone *zone,
    const struct partition_view *view, const struct cover *cover)
{
    for (size_t i = run->first; i < run->first + run->n; i++) {
        if (run->proof != PROOF_FOLD && proof_of(zone, view, cover->buckets[i]) != run->proof) {
            return false;
        }
    }
    return view->known;
}

/* ---- names ---- */

struct cache_id run_name(const struct cache *cache, struct buffer *scratch, unsigned partition,
    enum key_kind kind, struct slice site, const struct slice *const *pages, size_t n_pages)
{
    buffer_clear(scratch, 64 * 1024);
    resp_decimal(scratch, partition);
    resp_decimal(scratch, kind);
    resp_slice(scratch, site);
    for (size_t p = 0; p < n_pages; p++) {
        resp_word(scratch, pages[p]->p, pages[p]->n);
    }
    struct cache_id id = cache_id(cache, scratch->p, scratch->n);
    if (scratch->failed) { /* the bytes that are there may be the whole of another name */
        randombytes_buf(&id, sizeof(id));
    }
    buffer_clear(scratch, 64 * 1024);
    return id;
}

struct cache_id run_id(const struct cache *cache, const struct cache_id *name,
    const struct cover *cover, const struct remembered_run *run)
{
    struct {
        struct cache_id name;
        int64_t level, proof, start_s, end_s;
    } of = {*name, cover->buckets[run->first].level, 0, cover->buckets[run->first].start_s,
        cover->buckets[run->first + run->n - 1].end_s};
    if (of.level != LEVEL_MINUTE) {
        return cache_id(cache, &of, sizeof(of));
    }
    struct cache_id whole = cache_id(cache, &of, sizeof(of));
    of.proof = run->proof; /* from here on `of` is what the runs have in common */
    if (run->proof == PROOF_FOLD) {
        of.start_s = of.end_s = 0;
    } else if (of.start_s % HOUR_S == 0) {
        of.end_s = 0;
    } else {
        of.start_s = 0;
    }
    struct cache_id id = cache_id(cache, &of, sizeof(of));
    memcpy(&id.range, whole.bytes, sizeof(id.range));
    return id;
}
