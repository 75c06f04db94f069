#include "storage/count/whole.h"

#include <string.h>

#include "storage/base/index.h"

static bool may_recall(const struct count_question *q, const struct portion *portion)
{
    return proved_may_recall(&q->read, portion->partition) &&
           (portion->metrics & METRICS_OF_PAGE) == 0;
}

/* By the same plan. */
static bool has_same_runs(const struct partition_view *a, const struct partition_view *b)
{
    return a->over_s == b->over_s && (a->fold.n > 0) == (b->fold.n > 0);
}

size_t whole_portions(const struct count_question *q, size_t first)
{
    const struct portion *one = &q->portions[first];
    size_t n = 0;
    while (first + n < q->n_portions) {
        const struct portion *portion = &q->portions[first + n];
        if (!may_recall(q, portion) || portion->metrics != one->metrics ||
            portion->cover.buckets != one->cover.buckets ||
            !has_same_runs(portion_view(q, portion), portion_view(q, one))) {
            break;
        }
        n++;
    }
    return n < WHOLE_PORTIONS ? 0 : n;
}

/* One id for @proof in portions [first, first + n).  n 0: there is none. */
static struct ver combine_proofs(struct count_question *q, size_t first, size_t n, enum proof proof)
{
    struct buffer *scratch = &q->scratch;
    struct ver combined = {.n = 0};
    buffer_clear(scratch, 64 * 1024);
    for (size_t i = first; i < first + n; i++) {
        const struct proved_partition *known = &q->read.known[q->portions[i].partition];
        const struct ver *ver = proof_ver(&known->view, proof);
        if (ver->n == 0 || (known->changed >> proof & 1) != 0) {
            return combined;
        }
        buffer_append(scratch, (const char *)&ver->n, 1);
        buffer_append(scratch, ver->text, ver->n);
    }
    if (!scratch->failed) {
        struct cache_id id = cache_id(q->read.core->cache, scratch->p, scratch->n);
        combined.n = sizeof(id.bytes);
        memcpy(combined.text, id.bytes, sizeof(id.bytes));
    }
    return combined;
}

/* The name of what all portions have of a run. */
static struct cache_id whole_id(
    struct count_question *q, const struct whole_run *whole, enum metric metric)
{
    struct cache *cache = q->read.core->cache;
    const struct portion *one = &q->portions[whole->first];
    struct slice name = metric_name(metric, *one->pages[0]);
    const struct slice *only = &name;
    bool beside = metrics_have(METRICS_BESIDE, (int)metric);
    struct cache_id id = run_name(cache, &q->scratch,
        PARTITIONS_MAX + 1 + one->partition * PARTITIONS_MAX + (unsigned)whole->n,
        metric_kind(metric), q->job->asked.site, beside ? &only : one->pages,
        portion_names(one, metric));
    return run_id(cache, &id, &one->cover, &one->runs.all[whole->run]);
}

static void take_sum(void *data, const void *value, size_t n)
{
    memcpy(data, value, n);
}

/* The same to recall by; n 0 as well where it will hardly hold.  Several runs have one proof: from
 * one portion on there are as many alike throughout an attempt. */
static struct ver proof_to_recall_by(struct count_question *q, const struct whole_run *whole)
{
    enum proof proof = q->portions[whole->first].runs.all[whole->run].proof;
    const struct whole_run *before = whole > q->wholes ? whole - 1 : NULL;
    bool steady = true;
    if (before != NULL && before->first == whole->first &&
        q->portions[whole->first].runs.all[before->run].proof == proof) {
        return before->by;
    }
    for (size_t i = whole->first; steady && i < whole->first + whole->n; i++) {
        steady = proof_is_steady(portion_view(q, &q->portions[i]), proof, q->read.begun_ms);
    }
    return steady ? combine_proofs(q, whole->first, whole->n, proof) : (struct ver){.n = 0};
}

/* All metrics, or none. */
static bool find_sums(struct count_question *q, struct whole_run *whole)
{
    const struct portion *one = &q->portions[whole->first];
    bool found = whole->by.n > 0;
    for (int m = 0; found && m < METRICS; m++) {
        if (metrics_have(one->metrics, m)) {
            struct cache_id id = whole_id(q, whole, (enum metric)m);
            found = cache_get(q->read.core->cache, &id, &whole->by, take_sum, &whole->sums[m]);
        }
    }
    return found;
}

enum whole_found whole_recall(
    struct count_question *q, size_t first, size_t n, size_t run, size_t point)
{
    const struct portion *one = &q->portions[first];
    if (!array_reserve(&q->wholes, &q->wholes_capacity, q->n_wholes, sizeof(*q->wholes))) {
        return WHOLE_NOMEM;
    }
    struct whole_run *whole = &q->wholes[q->n_wholes++];
    *whole = (struct whole_run){.first = first, .n = n, .run = run};
    whole->by = proof_to_recall_by(q, whole);
    if (!find_sums(q, whole)) {
        memset(whole->sums, 0, sizeof(whole->sums));
        return WHOLE_UNKNOWN;
    }
    whole->recalled = true;
    for (int m = 0; m < METRICS; m++) {
        if (metrics_have(one->metrics, m)) {
            tally_sum(&q->tally, (enum metric)m, point, whole->sums[m]);
            atomic_fetch_add(&q->read.core->stats.cache_hits, 1);
        }
    }
    for (size_t i = first; i < first + n; i++) {
        struct portion *portion = &q->portions[i];
        portion->runs.all[run].recalled = true;
        proved_rely(&q->read, portion->partition, portion->runs.all[run].proof);
    }
    return WHOLE_RECALLED;
}

void whole_add(struct count_question *q, const struct portion *portion,
    const struct remembered_run *run, enum metric metric, uint64_t sum)
{
    for (size_t i = 0; i < q->n_wholes; i++) {
        struct whole_run *whole = &q->wholes[i];
        size_t at = portion->rest ? SIZE_MAX : (size_t)(portion - q->portions);
        if (at >= whole->first && at < whole->first + whole->n &&
            run == &portion->runs.all[whole->run]) {
            whole->sums[metric] += sum;
            whole->added[metric]++;
        }
    }
}

/* Every portion has added all that it is asked for. */
static bool is_complete(const struct count_question *q, const struct whole_run *whole)
{
    bool all = true;
    for (int m = 0; m < METRICS; m++) {
        bool asked = metrics_have(q->portions[whole->first].metrics, m);
        all = all && (!asked || whole->added[m] == whole->n);
    }
    return all;
}

void whole_remember(struct count_question *q)
{
    for (size_t i = 0; i < q->n_wholes; i++) {
        struct whole_run *whole = &q->wholes[i];
        const struct portion *one = &q->portions[whole->first];
        if (whole->recalled || !is_complete(q, whole)) {
            continue;
        }
        struct ver proof =
            combine_proofs(q, whole->first, whole->n, one->runs.all[whole->run].proof);
        for (int m = 0; m < METRICS; m++) {
            if (metrics_have(one->metrics, m)) {
                struct cache_id id = whole_id(q, whole, (enum metric)m);
                cache_put(
                    q->read.core->cache, &id, &proof, &whole->sums[m], sizeof(whole->sums[m]));
            }
        }
    }
}
