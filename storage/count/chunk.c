#include "storage/count/chunk.h"

#include "storage/base/index.h"
#include "storage/schema/part_set.h"

/* In one MULTI.  What Redis has gathered of an answer it sends only when the MULTI is over: 16
 * dense sketches (200 KB) are still in its processor's cache then, 256 cost it a quarter more. */
#define SKETCHES_AT_ONCE 16
#define READS_AT_ONCE    256 /* sums too */

size_t chunk_point_of(const struct portion *portion, size_t i, size_t point)
{
    while (!portion->rest && portion->ends[point] <= i) {
        point++;
    }
    return point;
}

/* How many buckets of a portion are read in one MULTI. */
static size_t buckets_at_once(const struct portion *portion)
{
    size_t sketches = portion_reads(portion, portion->metrics & METRICS_SKETCHES, 1);
    size_t all = portion_reads(portion, portion->metrics, 1);
    size_t n = all >= READS_AT_ONCE ? 1 : READS_AT_ONCE / all;
    while (n > 1 && n * sketches > SKETCHES_AT_ONCE) {
        n--;
    }
    return n;
}

/* Up to @at_once buckets of [first, end) that must be read, the first of them being one, and what
 * is recalled among them. */
static struct chunk cut_chunk(struct portion *portion, size_t first, size_t end, size_t at_once)
{
    struct chunk chunk = {.portion = portion, .first = first};
    for (size_t i = first; i < end && chunk.reads < at_once;
         i = runs_next_unread(&portion->runs, i + 1)) {
        chunk.reads++;
        chunk.n = i + 1 - first;
    }
    return chunk;
}

static bool add_chunk(struct count_question *q, struct chunk chunk)
{
    if (!array_reserve(&q->chunks, &q->chunks_capacity, q->n_chunks, sizeof(*q->chunks))) {
        return false;
    }
    q->chunks[q->n_chunks++] = chunk;
    return true;
}

/* Cut a portion's buckets [first, end), the first one of @point. */
static bool cut_buckets(
    struct count_question *q, struct portion *portion, size_t first, size_t end, size_t point)
{
    size_t at_once = buckets_at_once(portion);
    for (first = runs_next_unread(&portion->runs, first); first < end;
         first = runs_next_unread(&portion->runs, first)) {
        point = chunk_point_of(portion, first, point);
        struct chunk chunk = cut_chunk(portion, first, end, at_once);
        chunk.point = point;
        first += chunk.n;
        q->reads +=
            chunk.reads * (size_t)__builtin_popcount(portion->metrics & METRICS_OTHER_SKETCHES);
        for (int metric = 0; metric < METRICS; metric++) {
            q->reads += chunk.reads * portion_keys(portion, (enum metric)metric);
        }
        if (!add_chunk(q, chunk)) {
            return false;
        }
    }
    return true;
}

/* The same for the group of points from @point on. */
static bool cut_group(struct count_question *q, struct portion *portion, size_t point)
{
    size_t last = point + TALLY_GROUP < q->tally.n_points ? point + TALLY_GROUP : q->tally.n_points;
    size_t first = point == 0 ? 0 : portion->ends[point - 1];
    return cut_buckets(q, portion, first, portion->ends[last - 1], point);
}

/* What is recalled of a partition of which nothing is read wants proof as well. */
static bool cut_proofs(struct count_question *q)
{
    struct part_set asked = {{0}};
    for (size_t i = 0; i < q->n_chunks; i++) {
        part_set_add(&asked, q->chunks[i].portion->partition);
    }
    for (size_t i = 0; i < q->n_portions; i++) {
        struct portion *portion = &q->portions[i];
        const struct proved_partition *known = &q->read.known[portion->partition];
        bool proved = known->held != 0 && known->unproved == 0;
        if (!part_set_has(&asked, portion->partition) && !proved &&
            !add_chunk(q, (struct chunk){.portion = portion})) {
            return false;
        }
        part_set_add(&asked, portion->partition);
    }
    return true;
}

bool chunks_cut(struct count_question *q)
{
    q->n_chunks = 0;
    q->reads = 0;
    for (size_t point = 0; point < q->tally.n_points; point += TALLY_GROUP) {
        size_t before = q->n_chunks;
        for (size_t i = 0; i < q->n_portions; i++) {
            if (!cut_group(q, &q->portions[i], point)) {
                return false;
            }
        }
        if (q->n_chunks > before) {
            q->chunks[q->n_chunks - 1].ends_group = true;
        }
    }
    for (size_t i = 0; i < q->n_rest; i++) {
        struct portion *rest = &q->rest[i];
        if (!cut_buckets(q, rest, 0, rest->cover.n, TALLY_TOTAL)) {
            return false;
        }
    }
    return cut_proofs(q);
}
