#include "storage/closed_run.h"

bool closed_provable(
    const struct zone *zone, const struct rollup_state *state, struct bucket bucket)
{
    if (bucket.level == LEVEL_MINUTE) {
        bucket = bucket_at(zone, LEVEL_HOUR, bucket.start_s);
    }
    return closed_for_readers(state, bucket);
}

size_t closed_run_end(const struct zone *zone, const struct rollup_state *state,
    const struct cover *cover, size_t i, size_t end)
{
    const struct bucket *buckets = cover->buckets;
    size_t at = i;
    while (at < end && closed_provable(zone, state, buckets[at]) &&
           (at == i || (buckets[at].level == buckets[at - 1].level &&
                           buckets[at].start_s == buckets[at - 1].end_s))) {
        at++;
    }
    return at;
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
