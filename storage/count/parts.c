#include "storage/count/parts.h"

#include <string.h>

void parts_take(
    struct count_question *q, struct whole_run *whole, size_t i, enum metric metric, uint64_t sum)
{
    whole->sums[metric] += sum;
    whole->added[metric]++;
    q->whole_sums[whole->parts + i * METRICS + metric] = sum;
}

/* One partition's part, as it is kept. */
struct part {
    uint64_t proof; /* ver_hash() of the partition's id; 0: the part is not known */
    uint64_t sum;
};

#define PARTS_KEPT (VISITOR_PARTITIONS_MAX * sizeof(struct part))

static struct cache_id parts_id(
    struct count_question *q, const struct whole_run *whole, enum metric metric)
{
    const struct portion *one = &q->portions[whole->first];
    struct cache_id name = portion_run_name(q, one, metric, RUN_OF_PARTS);
    return run_id(q->read.core->cache, &name, &one->cover, whole_run_of(q, whole));
}

static size_t n_parts(const struct count_question *q)
{
    return visitor_partitions(q->read.core->partitions.n);
}

/* Which part is that of portion @i of the whole? */
static size_t part_number(const struct count_question *q, const struct whole_run *whole, size_t i)
{
    return visitor_partition_number(
        &q->read.core->partitions, q->portions[whole->first + i].partition);
}

/* Append the parts that are remembered under @id.  False: there are none. */
static bool append_parts(struct count_question *q, const struct cache_id *id)
{
    return cache_get(q->read.core->cache, id, &cache_no_proof, cache_append_to, &q->parts);
}

/* ---- recalling ---- */

/* The parts of all metrics that are asked for, one behind the other.  NULL: they are not there. */
static const struct part *find_parts(struct count_question *q, const struct whole_run *whole)
{
    bool found = true;
    size_t n = 0;
    buffer_clear(&q->parts, PARTS_KEPT);
    for (enum metric m = 0; found && m < METRICS; m++) {
        if (metrics_have(q->portions[whole->first].metrics, m)) {
            struct cache_id id = parts_id(q, whole, m);
            found = append_parts(q, &id);
            n += n_parts(q) * sizeof(struct part);
        }
    }
    return found && !q->parts.failed && q->parts.n == n ? (const struct part *)(void *)q->parts.p
                                                        : NULL;
}

/* Is @part of each of @n_metrics proved, in as many lists of @n parts? */
static bool is_proved(const struct part *part, size_t n, unsigned n_metrics, uint64_t proof)
{
    bool proved = proof != 0;
    for (unsigned m = 0; proved && m < n_metrics; m++) {
        proved = part[m * n].proof == proof;
    }
    return proved;
}

static void take_part(struct count_question *q, struct whole_run *whole, size_t i,
    const struct part *part, size_t point)
{
    struct portion *portion = &q->portions[whole->first + i];
    struct remembered_run *run = &portion->runs.all[whole->run];
    for (enum metric m = 0; m < METRICS; m++) {
        if (metrics_have(portion->metrics, m)) {
            tally_sum(&q->tally, m, point, part->sum);
            parts_take(q, whole, i, m, part->sum);
            part += n_parts(q);
        }
    }
    run->recalled = true;
    proved_rely(&q->read, portion->partition, run->proof);
}

void parts_recall(struct count_question *q, struct whole_run *whole, size_t point)
{
    const struct portion *one = &q->portions[whole->first];
    unsigned n_metrics = (unsigned)__builtin_popcount(one->metrics);
    enum proof proof = whole_run_of(q, whole)->proof;
    int64_t hits = 0;
    if (proof == PROOF_FOLD) { /* nothing is kept: it is read as fast */
        return;
    }
    const struct part *parts = find_parts(q, whole);
    for (size_t i = 0; parts != NULL && i < whole->n; i++) {
        uint64_t by = proved_by(&q->read, q->portions[whole->first + i].partition, proof);
        const struct part *part = &parts[part_number(q, whole, i)];
        if (is_proved(part, n_parts(q), n_metrics, by)) {
            take_part(q, whole, i, part, point);
            hits++;
        }
    }
    atomic_fetch_add(&q->read.core->stats.cache_hits, hits);
    atomic_fetch_add(&q->read.core->stats.cache_misses, (int64_t)whole->n - hits);
}

/* ---- remembering ---- */

/* What portion @i has of @metric.  False: that is not known, or not of one id. */
static bool part_of(const struct count_question *q, const struct whole_run *whole, size_t i,
    enum metric metric, struct part *ret)
{
    enum proof proof = whole_run_of(q, whole)->proof;
    const struct proved_partition *known = &q->read.known[q->portions[whole->first + i].partition];
    *ret = (struct part){ver_hash(proof_ver(&known->view, proof)),
        q->whole_sums[whole->parts + i * METRICS + metric]};
    return ret->sum != PART_UNKNOWN && (known->changed >> proof & 1) == 0;
}

/* All parts as they are remembered, or unknown.  NULL: no memory. */
static struct part *old_parts(struct count_question *q, const struct cache_id *id)
{
    size_t n = n_parts(q) * sizeof(struct part);
    buffer_clear(&q->parts, PARTS_KEPT);
    if (!append_parts(q, id)) {
        char *room = buffer_grow(&q->parts, n);
        if (room != NULL) {
            memset(room, 0, n);
        }
    }
    return q->parts.failed || q->parts.n != n ? NULL : (struct part *)(void *)q->parts.p;
}

void parts_keep(struct count_question *q, const struct whole_run *whole)
{
    unsigned metrics = q->portions[whole->first].metrics;
    bool lasts = whole_run_of(q, whole)->proof != PROOF_FOLD;
    for (enum metric m = 0; lasts && m < METRICS; m++) {
        if (!metrics_have(metrics, m)) {
            continue;
        }
        struct cache_id id = parts_id(q, whole, m);
        struct part *parts = old_parts(q, &id);
        struct part part;
        for (size_t i = 0; parts != NULL && i < whole->n; i++) {
            if (part_of(q, whole, i, m, &part)) {
                parts[part_number(q, whole, i)] = part;
            }
        }
        if (parts != NULL) {
            cache_put(q->read.core->cache, &id, &cache_no_proof, parts, q->parts.n);
        }
    }
}
