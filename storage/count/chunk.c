#include "storage/count/chunk.h"

#include "storage/base/index.h"
#include "storage/count/recall.h"

/* In one MULTI.  What Redis has gathered of an answer it sends only when the MULTI is over: 16
 * dense sketches (200 KB) are still in its processor's cache then, 256 cost it a quarter more. */
#define SKETCHES_AT_ONCE 16
#define READS_AT_ONCE    256 /* sums too */

bool chunk_has_metric(const struct chunk *chunk, int metric)
{
    return (chunk->metrics >> metric & 1) != 0;
}

size_t chunk_next_read(const struct shard *shard, size_t i)
{
    const struct run *run = NULL;
    while ((run = count_run_at(shard, i)) != NULL && run->recalled) {
        i = run->first + run->n;
    }
    return i;
}

size_t chunk_point_of(const struct shard *shard, size_t i, size_t point)
{
    while (!shard->rest && shard->ends[point] <= i) {
        point++;
    }
    return point;
}

/* How many buckets of a shard are read in one MULTI for @metrics. */
static size_t buckets_at_once(const struct shard *shard, unsigned metrics)
{
    size_t sketches = counter_reads(shard, metrics & METRICS_SKETCHES, 1);
    size_t all = counter_reads(shard, metrics, 1);
    size_t n = all >= READS_AT_ONCE ? 1 : READS_AT_ONCE / all;
    while (n > 1 && n * sketches > SKETCHES_AT_ONCE) {
        n--;
    }
    return n;
}

/* Up to @at_once buckets of [first, end) that must be read, the first of them being one, and what
 * is recalled among them. */
static struct chunk cut_chunk(struct shard *shard, size_t first, size_t end, size_t at_once)
{
    struct chunk chunk = {.shard = shard, .first = first};
    for (size_t i = first; i < end && chunk.reads < at_once; i = chunk_next_read(shard, i + 1)) {
        chunk.reads++;
        chunk.n = i + 1 - first;
    }
    return chunk;
}

static bool add_chunk(struct counter *c, struct chunk chunk)
{
    if (!array_reserve(&c->chunks, &c->chunks_capacity, c->n_chunks, sizeof(*c->chunks))) {
        return false;
    }
    c->chunks[c->n_chunks++] = chunk;
    return true;
}

/* Cut a shard's buckets [first, end), the first one of @point, into chunks for @metrics. */
static bool cut_buckets(struct counter *c, struct shard *shard, unsigned metrics, size_t first,
    size_t end, size_t point)
{
    size_t at_once = buckets_at_once(shard, metrics);
    for (first = chunk_next_read(shard, first); first < end;
         first = chunk_next_read(shard, first)) {
        point = chunk_point_of(shard, first, point);
        struct chunk chunk = cut_chunk(shard, first, end, at_once);
        chunk.metrics = metrics;
        chunk.point = point;
        first += chunk.n;
        for (int metric = 0; metric < METRICS; metric++) {
            c->reads += chunk.reads * counter_keys(shard, metrics, (enum metric)metric);
        }
        if (!add_chunk(c, chunk)) {
            return false;
        }
    }
    return true;
}

/* The same for the group of points from @point on. */
static bool cut_group(struct counter *c, struct shard *shard, size_t point)
{
    size_t last = point + TALLY_GROUP < c->tally.n_points ? point + TALLY_GROUP : c->tally.n_points;
    size_t first = point == 0 ? 0 : shard->ends[point - 1];
    size_t end = shard->ends[last - 1];
    if (!c->by_script) {
        return cut_buckets(c, shard, shard->metrics, first, end, point);
    }
    for (unsigned metric = 0; metric < METRICS; metric++) {
        unsigned one = shard->metrics & 1u << metric;
        if (one != 0 && !cut_buckets(c, shard, one, first, end, point)) {
            return false;
        }
    }
    return true;
}

/* What is recalled of a shard of which nothing is read wants proof as well. */
static bool cut_proofs(struct counter *c)
{
    for (size_t i = 0; i < c->n_shards; i++) {
        c->shards[i].asked = false;
    }
    for (size_t i = 0; i < c->n_chunks; i++) {
        c->chunks[i].shard->asked = true;
    }
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *shard = &c->shards[i];
        if (!shard->asked &&
            !add_chunk(c, (struct chunk){.shard = shard, .metrics = shard->metrics})) {
            return false;
        }
    }
    return true;
}

bool chunks_cut(struct counter *c)
{
    c->n_chunks = 0;
    c->reads = 0;
    for (size_t point = 0; point < c->tally.n_points; point += TALLY_GROUP) {
        size_t before = c->n_chunks;
        for (size_t i = 0; i < c->n_shards; i++) {
            if (!cut_group(c, &c->shards[i], point)) {
                return false;
            }
        }
        if (c->n_chunks > before) {
            c->chunks[c->n_chunks - 1].ends_group = true;
        }
    }
    for (size_t i = 0; i < c->n_rest; i++) {
        struct shard *rest = &c->rest[i];
        if (!cut_buckets(c, rest, rest->metrics, 0, rest->cover.n, TALLY_TOTAL)) {
            return false;
        }
    }
    return cut_proofs(c);
}
