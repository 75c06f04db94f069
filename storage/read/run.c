#include "storage/read/run.h"
#include "storage/redis/resp.h"

enum proof closed_proof(
    const struct zone *zone, const struct partition_view *view, struct bucket bucket)
{
    bool minute = bucket.level == LEVEL_MINUTE;
    struct bucket rolled = minute ? bucket_at(zone, LEVEL_HOUR, bucket.start_s) : bucket;
    if (closed_for_readers(&view->state, rolled)) {
        return PROOF_VER;
    }
    return minute && bucket.end_s <= view->over_s ? PROOF_OVER : PROOF_NONE;
}

const struct ver *closed_ver(const struct partition_view *view, enum proof proof)
{
    static const struct ver none = {.n = 0};
    return !view->known          ? &none
           : proof == PROOF_VER  ? &view->ver
           : proof == PROOF_OVER ? &view->over
                                 : &none;
}

bool closed_recall(struct cache *cache, const struct cache_id *id,
    const struct partition_view *view, enum proof proof,
    void (*use)(void *data, const void *value, size_t n), void *data)
{
    bool steady = proof == PROOF_VER || view->over_held;
    return steady && cache_get(cache, id, closed_ver(view, proof), use, data);
}

bool closed_same(
    unsigned proofs, const struct partition_view *planned, const struct partition_view *now)
{
    return ((proofs >> PROOF_VER & 1) == 0 || ver_equal(&planned->ver, &now->ver)) &&
           ((proofs >> PROOF_OVER & 1) == 0 || ver_equal(&planned->over, &now->over));
}

size_t closed_run_end(const struct zone *zone, const struct partition_view *view,
    const struct cover *cover, size_t i, size_t end)
{
    const struct bucket *buckets = cover->buckets;
    enum proof proof = i < end ? closed_proof(zone, view, buckets[i]) : PROOF_NONE;
    size_t at = i;
    while (proof != PROOF_NONE && at < end && closed_proof(zone, view, buckets[at]) == proof &&
           (at == i || (buckets[at].level == buckets[at - 1].level &&
                           buckets[at].start_s == buckets[at - 1].end_s))) {
        at++;
    }
    return at;
}

bool closed_run_holds(const struct zone *zone, const struct partition_view *view, enum proof proof,
    const struct cover *cover, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++) {
        if (closed_proof(zone, view, cover->buckets[i]) != proof) {
            return false;
        }
    }
    return view->known;
}

struct cache_id closed_name(const struct cache *cache, struct buffer *scratch, unsigned partition,
    enum key_kind kind, struct slice site, const struct slice *const *pages, size_t n_pages)
{
    buffer_clear(scratch, 64 * 1024);
    resp_decimal(scratch, partition);
    resp_decimal(scratch, kind);
    resp_word(scratch, site.p, site.n);
    for (size_t p = 0; p < n_pages; p++) {
        resp_word(scratch, pages[p]->p, pages[p]->n);
    }
    struct cache_id id = cache_id(cache, scratch->p, scratch->n);
    buffer_clear(scratch, 64 * 1024);
    return id;
}

struct cache_id closed_run_id(const struct cache *cache, const struct cache_id *name,
    const struct cover *cover, size_t first, size_t n)
{
    struct {
        struct cache_id name;
        int64_t level, start_s, end_s;
    } run = {*name, cover->buckets[first].level, cover->buckets[first].start_s,
        cover->buckets[first + n - 1].end_s};
    return cache_id(cache, &run, sizeof(run));
}
