#include "storage/count.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/count_read.h"
#include "storage/key.h"

#define BUCKETS_MAX 50000
#define READS_MAX   200000  /* sketches in one question */
#define SUMS_MAX    2000000 /* fields: a set of 1,000 pages, in all partitions, over a day */
#define RECALLS     2       /* attempts; where late events come faster than that, all is read */

struct counter *counter_new(struct core *core)
{
    struct counter *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->core = core;
    }
    return c;
}

static void drop_shards(struct counter *c)
{
    for (size_t i = 0; i < c->n_shards; i++) {
        free(c->shards[i].pages);
        free(c->shards[i].runs);
        cover_release(&c->shards[i].cover);
    }
    c->n_shards = 0;
}

void counter_free(struct counter *c)
{
    if (c != NULL) {
        drop_shards(c);
        free(c->chunks);
        buffer_release(&c->out);
        free(c);
    }
}

/* ---- planning ---- */

static struct shard *shard_for(struct counter *c, unsigned partition, size_t max_pages)
{
    for (size_t i = 0; i < c->n_shards; i++) {
        if (c->shards[i].partition == partition) {
            return &c->shards[i];
        }
    }
    struct shard *shard = &c->shards[c->n_shards];
    *shard = (struct shard){.partition = partition};
    shard->pages = malloc(max_pages * sizeof(struct slice *));
    if (shard->pages == NULL) {
        return NULL;
    }
    cover_init(&shard->cover);
    c->n_shards++;
    return shard;
}

/* A page asked for twice is one page: sums must not count it twice. */
static bool add_page(struct shard *shard, const struct slice *page)
{
    for (size_t i = 0; i < shard->n_pages; i++) {
        if (slice_equal(*shard->pages[i], *page)) {
            return true;
        }
    }
    shard->pages[shard->n_pages++] = page;
    return true;
}

/* Which partition is asked for which pages: a page's own one; for visits, which lie with the
 * visitors, all. */
static bool make_shards(struct counter *c, const struct count_job *job)
{
    const struct slice *pages = job->n_pages == 0 ? &counter_whole_site : job->pages;
    size_t n_pages = job->n_pages == 0 ? 1 : job->n_pages;
    drop_shards(c);
    for (size_t i = 0; i < n_pages; i++) {
        unsigned first = partition_of(&c->core->partitions, page_hash(job->site, pages[i]));
        unsigned last = first;
        if (job->metric == METRIC_VISITS) {
            first = 0;
            last = c->core->partitions.n - 1;
        }
        for (unsigned p = first; p <= last; p++) {
            struct shard *shard = shard_for(c, p, n_pages);
            if (shard == NULL || !add_page(shard, &pages[i])) {
                return false;
            }
        }
    }
    return true;
}

/* Widen the window until every shard can tile it. */
static bool widen(struct counter *c, int64_t now_s, struct window *window)
{
    struct window before;
    do {
        before = *window;
        for (size_t i = 0; i < c->n_shards; i++) {
            struct partition_view view = core_view(c->core, c->shards[i].partition);
            struct cover_basis basis = counter_basis(c, &view, now_s);
            if (!cover_outer(&basis, *window, window)) {
                return false;
            }
        }
    } while (before.from_s != window->from_s || before.to_s != window->to_s);
    return true;
}

static enum storage_err plan(
    struct counter *c, enum metric metric, struct window window, int64_t now_s)
{
    size_t most = metric_is_sketch(metric) ? READS_MAX : SUMS_MAX;
    size_t reads = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *shard = &c->shards[i];
        struct partition_view view = core_view(c->core, shard->partition);
        struct cover_basis basis = counter_basis(c, &view, now_s);
        switch (cover_plan(&basis, window, BUCKETS_MAX, &shard->cover)) {
        case COVER_OK:
            break;
        case COVER_NOT_KEPT:
            return STORAGE_NOT_KEPT;
        case COVER_TOO_MANY:
            return STORAGE_TOO_BROAD;
        case COVER_NOMEM:
            return STORAGE_NOMEM;
        }
        reads += shard->cover.n * shard->n_pages;
    }
    return reads > most ? STORAGE_TOO_BROAD : STORAGE_OK;
}

/* ---- the answer ---- */

static int by_time(const void *a, const void *b)
{
    const struct counted_key *x = a;
    const struct counted_key *y = b;
    if (x->bucket.start_s != y->bucket.start_s) {
        return x->bucket.start_s < y->bucket.start_s ? -1 : 1;
    }
    size_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(x->key, y->key, n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static bool list_key(struct count_job *job, const struct key *key, struct bucket bucket)
{
    char *copy = malloc(key->n);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, key->p, key->n);
    job->keys[job->n_keys++] = (struct counted_key){.bucket = bucket, .key = copy, .n = key->n};
    return true;
}

/* The keys read: one a bucket and page for sketches, one a bucket for sums. */
static bool explain(struct counter *c, struct count_job *job, size_t total)
{
    job->keys = calloc(total == 0 ? 1 : total, sizeof(*job->keys));
    bool ok = job->keys != NULL;
    for (size_t s = 0; ok && s < c->n_shards; s++) {
        const struct shard *shard = &c->shards[s];
        size_t pages = metric_is_sketch(job->metric) ? shard->n_pages : 1;
        for (size_t i = 0; ok && i < shard->cover.n * pages; i++) {
            struct bucket bucket = shard->cover.buckets[i / pages];
            struct key key;
            key_bucket(&key, c->core->partitions.tag[shard->partition], metric_kind(job->metric),
                job->site, bucket, *shard->pages[i % pages]);
            ok = list_key(job, &key, bucket);
        }
    }
    if (ok) {
        qsort(job->keys, job->n_keys, sizeof(*job->keys), by_time);
    }
    return ok;
}

static enum storage_err conclude(struct counter *c, struct count_job *job, struct window window)
{
    size_t total = 0;
    for (size_t s = 0; s < c->n_shards; s++) {
        const struct shard *shard = &c->shards[s];
        size_t pages = metric_is_sketch(job->metric) ? shard->n_pages : 1;
        for (int level = 0; level < LEVELS; level++) {
            job->per_level[level] += (uint32_t)(shard->cover.per_level[level] * pages);
        }
        total += shard->cover.n * pages;
    }
    job->answered = window;
    job->value = metric_is_sketch(job->metric) ? hll_estimate(&c->hll) : c->sum;
    atomic_fetch_add(&c->core->stats.queries, 1);
    atomic_fetch_add(&c->core->stats.query_keys, (int64_t)c->reads);
    return job->explain && !explain(c, job, total) ? STORAGE_NOMEM : STORAGE_OK;
}

/* Plan for @window, or for what is answerable around it. */
static enum storage_err plan_some(
    struct counter *c, struct count_job *job, int64_t now_s, struct window *window)
{
    enum storage_err err = plan(c, job->metric, *window, now_s);
    if (err != STORAGE_NOT_KEPT) {
        return err;
    }
    struct window outer = *window;
    if (!widen(c, now_s, &outer)) {
        job->answered = (struct window){window->from_s, window->from_s};
        return err;
    }
    if (!job->round_outer) {
        job->answered = outer;
        return err;
    }
    *window = outer;
    return plan(c, job->metric, outer, now_s);
}

enum storage_err counter_run(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost)
{
    struct count_job *count = &job->u.count;
    struct window asked = count->window;
    *ret_lost = false;
    c->forgetful = false;
    if (!make_shards(c, count)) {
        return STORAGE_NOMEM;
    }
    for (unsigned attempt = 0; monotonic_ms() < job->deadline_ms; attempt++) {
        c->forgetful = attempt >= RECALLS;
        int64_t now_s = redis_clock_ms(&c->core->clock) / 1000;
        struct window window = asked;
        enum storage_err err = plan_some(c, count, now_s, &window);
        if (err == STORAGE_OK) {
            err = counter_read(c, session, job, ret_lost);
        }
        if (err != STORAGE_OK) {
            return err;
        }
        int64_t minute_end_s = bucket_at(c->core->zone, LEVEL_MINUTE, c->latest_s).end_s;
        bool moved_on = count->to_is_now && minute_end_s > asked.to_s;
        if (!c->stale && !moved_on) {
            return conclude(c, count, window);
        }
        asked.to_s = moved_on ? minute_end_s : asked.to_s;
        atomic_fetch_add(&c->core->stats.query_replans, 1);
    }
    return STORAGE_LATE; /* rollups moved on faster than we could read */
}
