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

/* The coarser bucket that bucket @i of @run is in. */
static struct bucket around_of(const struct bucket_run *run, size_t i)
{
    return bucket_at(run->zone, run->buckets[i].level + 1, run->buckets[i].start_s);
}

/* The first bucket of @run from @i on that is not in @around. */
static size_t end_in(const struct bucket_run *run, size_t i, struct bucket around)
{
    while (i < run->n && run->buckets[i].start_s < around.end_s) {
        i++;
    }
    return i;
}

/* The name of what the buckets in @around have of @name. */
static struct cache_id known_id(
    const struct cache *cache, const struct cache_id *name, struct bucket around)
{
    struct {
        struct cache_id name;
        int64_t level, start_s;
    } of = {*name, -(int64_t)around.level, around.start_s};
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

/* Add up buckets [first, end) of @run.  False: not all are there. */
static bool add_known(const struct known_buckets *known, const struct bucket_run *run, size_t first,
    size_t end, uint64_t *sum)
{
    size_t at = place_of(known, run->buckets[first].start_s);
    for (size_t i = first; i < end; i++, at++) {
        if (at >= known->n || known->all[at].start_s != run->buckets[i].start_s) {
            return false;
        }
        *sum += known->all[at].sum;
    }
    return true;
}

bool bucket_sums_find(struct cache *cache, const struct cache_id *name, const struct ver *ver,
    const struct bucket_run *run, uint64_t *ret_sum)
{
    struct known_buckets known;
    uint64_t sum = 0;
    for (size_t i = 0, end; i < run->n; i = end) {
        struct bucket around = around_of(run, i);
        struct cache_id id = known_id(cache, name, around);
        end = end_in(run, i, around);
        if (!cache_get(cache, &id, ver, copy_known, &known) ||
            !add_known(&known, run, i, end, &sum)) {
            return false;
        }
    }
    *ret_sum = sum;
    return true;
}

static void put_known(struct known_buckets *known, int64_t start_s, uint64_t sum)
{
    size_t at = place_of(known, start_s);
    if (at == known->n || known->all[at].start_s != start_s) {
        memmove(&known->all[at + 1], &known->all[at], (known->n - at) * sizeof(known->all[0]));
        known->n++;
    }
    known->all[at] = (struct known_bucket){start_s, sum};
}

void bucket_sums_keep(struct cache *cache, const struct cache_id *name, const struct ver *ver,
    const struct bucket_run *run, const uint64_t *sums)
{
    struct known_buckets known;
    for (size_t i = 0, end; i < run->n; i = end) {
        struct bucket around = around_of(run, i);
        struct cache_id id = known_id(cache, name, around);
        end = end_in(run, i, around);
        known.n = 0;
        (void)cache_get(cache, &id, ver, copy_known, &known);
        for (size_t k = i; k < end; k++) {
            put_known(&known, run->buckets[k].start_s, sums[k * run->stride]);
        }
        if (known.n <= BUCKET_SUMS_MAX) {
            cache_put(cache, &id, ver, known.all, known.n * sizeof(known.all[0]));
        }
    }
}
