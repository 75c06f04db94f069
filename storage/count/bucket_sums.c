#include "storage/count/bucket_sums.h"

#include <string.h>

/* What is kept: buckets in time order. */
struct known_buckets {
    size_t n;
    struct known_bucket {
        int64_t start_s;
        uint64_t sum;
    } all[2 * BUCKET_SUMS_MAX]; /* room to put some beside all others */
};

size_t bucket_sums_of(
    const struct zone *zone, const struct cover *cover, const struct remembered_run *run)
{
    const struct bucket *first = &cover->buckets[run->first];
    const struct bucket *last = &cover->buckets[run->first + run->n - 1];
    if (run->proof != PROOF_VER || first->level == LEVEL_MONTH || run->n > BUCKET_SUMS_MAX) {
        return 0;
    }
    struct bucket around = bucket_at(zone, first->level + 1, first->start_s);
    return last->start_s < around.end_s ? run->n : 0;
}

struct cache_id bucket_sums_id(const struct cache *cache, const struct zone *zone,
    const struct cache_id *name, struct bucket bucket)
{
    struct {
        struct cache_id name;
        int64_t level, around_s;
    } of = {*name, -1 - (int64_t)bucket.level,
        bucket_at(zone, bucket.level + 1, bucket.start_s).start_s};
    return cache_id(cache, &of, sizeof(of));
}

static void copy_known(void *data, const void *value, size_t n)
{
    struct known_buckets *known = data;
    known->n = n / sizeof(known->all[0]);
    memcpy(known->all, value, n);
}

/* Where the bucket that begins at @start_s is, or would be. */
static size_t place_of(const struct known_buckets *known, int64_t start_s)
{
    size_t i = 0;
    while (i < known->n && known->all[i].start_s < start_s) {
        i++;
    }
    return i;
}

bool bucket_sums_find(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    const struct bucket_run *run, uint64_t *ret_sum)
{
    struct known_buckets known = {.n = 0};
    if (!cache_get(cache, id, ver, copy_known, &known)) {
        return false;
    }
    size_t from = place_of(&known, run->buckets[0].start_s);
    uint64_t sum = 0;
    for (size_t i = 0; i < run->n; i++) {
        const struct known_bucket *bucket = &known.all[from + i];
        if (from + i >= known.n || bucket->start_s != run->buckets[i].start_s) {
            return false;
        }
        sum += bucket->sum;
    }
    *ret_sum = sum;
    return true;
}

void bucket_sums_keep(struct cache *cache, const struct cache_id *id, const struct ver *ver,
    const struct bucket_run *run, const uint64_t *sums)
{
    struct known_buckets known = {.n = 0};
    (void)cache_get(cache, id, ver, copy_known, &known);
    for (size_t i = 0; i < run->n; i++) {
        struct known_bucket bucket = {run->buckets[i].start_s, sums[i * run->stride]};
        size_t at = place_of(&known, bucket.start_s);
        if (at == known.n || known.all[at].start_s != bucket.start_s) {
            memmove(&known.all[at + 1], &known.all[at], (known.n - at) * sizeof(bucket));
            known.n++;
        }
        known.all[at] = bucket;
    }
    if (known.n <= BUCKET_SUMS_MAX) {
        cache_put(cache, id, ver, known.all, known.n * sizeof(known.all[0]));
    }
}
