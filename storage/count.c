#include "storage/count.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/hll.h"
#include "storage/index.h"
#include "storage/key.h"
#include "storage/script.h"

#define BUCKETS_MAX    50000
#define READS_MAX      200000 /* keys, or fields, in one question */
#define READS_AT_ONCE  256    /* in one MULTI: 3 MB of dense sketches */
#define AHEAD_SKETCHES 768    /* keys asked for and not answered: 9 MB that Redis buffers for us */
#define AHEAD_SUMS     20000

/* What one partition is asked. */
struct shard {
    unsigned partition;
    const struct slice **pages; /* owned array of the question's pages */
    size_t n_pages;
    struct cover cover;
};

/* One MULTI under way: buckets [first, first + n) of a shard's cover. */
struct chunk {
    struct shard *shard;
    size_t first, n;
    size_t n_commands; /* between HMGET and TIME */
};

struct counter {
    struct core *core;
    struct hll hll;
    struct shard shards[PARTITIONS_MAX];
    size_t n_shards;
    struct chunk *chunks;
    size_t n_chunks, chunks_capacity;
    struct buffer out;
    uint64_t sum;
    int64_t latest_s; /* Redis's clock in the newest reply */
    bool stale;       /* a plan did not hold */
    bool by_script;   /* Redis's memory is full */
};

static const struct slice whole_site = {"", 0};

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

static bool is_sketch(enum metric metric)
{
    return metric == METRIC_UV || metric == METRIC_IPS;
}

static enum key_kind kind_of(enum metric metric)
{
    switch (metric) {
    case METRIC_PV:
        return KEY_PV;
    case METRIC_UV:
        return KEY_UV;
    case METRIC_IPS:
        return KEY_IP;
    case METRIC_VISITS:
        return KEY_VV;
    }
    return KEY_PV;
}

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
    const struct slice *pages = job->n_pages == 0 ? &whole_site : job->pages;
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

static struct cover_basis basis_of(
    const struct counter *c, const struct partition_view *view, int64_t now_s)
{
    return (struct cover_basis){
        .zone = c->core->zone,
        .state = &view->state,
        .retention = &view->retention,
        .now_s = now_s,
        .empty_from_s = now_s + STORAGE_FUTURE_MAX_S + 3600,
    };
}

/* Widen the window until every shard can tile it. */
static bool widen(struct counter *c, int64_t now_s, struct window *window)
{
    struct window before;
    do {
        before = *window;
        for (size_t i = 0; i < c->n_shards; i++) {
            struct partition_view view = core_view(c->core, c->shards[i].partition);
            struct cover_basis basis = basis_of(c, &view, now_s);
            if (!cover_outer(&basis, *window, window)) {
                return false;
            }
        }
    } while (before.from_s != window->from_s || before.to_s != window->to_s);
    return true;
}

static enum storage_err plan(struct counter *c, struct window window, int64_t now_s)
{
    size_t reads = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *shard = &c->shards[i];
        struct partition_view view = core_view(c->core, shard->partition);
        struct cover_basis basis = basis_of(c, &view, now_s);
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
    return reads > READS_MAX ? STORAGE_TOO_BROAD : STORAGE_OK;
}

/* ---- asking ---- */

static void read_sketches(struct counter *c, const struct count_job *job, struct chunk *chunk)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    resp_head(&c->out, 1 + chunk->n * shard->n_pages);
    resp_text(&c->out, "MGET");
    for (size_t i = 0; i < chunk->n; i++) {
        for (size_t p = 0; p < shard->n_pages; p++) {
            struct key key;
            key_bucket(&key, tag, kind_of(job->metric), job->site,
                shard->cover.buckets[chunk->first + i], *shard->pages[p]);
            resp_word(&c->out, key.p, key.n);
        }
    }
    chunk->n_commands = 1;
}

static void read_sums(struct counter *c, const struct count_job *job, struct chunk *chunk)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    for (size_t i = 0; i < chunk->n; i++) {
        struct bucket bucket = shard->cover.buckets[chunk->first + i];
        struct key key;
        key_bucket(&key, tag, kind_of(job->metric), job->site, bucket, whole_site);
        resp_head(&c->out, 2 + shard->n_pages);
        resp_text(&c->out, bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
        resp_word(&c->out, key.p, key.n);
        for (size_t p = 0; p < shard->n_pages; p++) {
            resp_word(&c->out, shard->pages[p]->p, shard->pages[p]->n);
        }
    }
    chunk->n_commands = chunk->n;
}

static void write_chunk(struct counter *c, const struct count_job *job, struct chunk *chunk)
{
    struct key rolled;
    key_fixed(&rolled, c->core->partitions.tag[chunk->shard->partition], "rolled", SLICE(""));
    resp_command(&c->out, "MULTI", NULL);
    resp_head(&c->out, 6);
    resp_text(&c->out, "HMGET");
    resp_word(&c->out, rolled.p, rolled.n);
    resp_text(&c->out, "cfg");
    resp_text(&c->out, "st");
    resp_text(&c->out, "ver");
    resp_text(&c->out, "kept");
    if (is_sketch(job->metric)) {
        read_sketches(c, job, chunk);
    } else {
        read_sums(c, job, chunk);
    }
    resp_command(&c->out, "TIME", NULL);
    resp_command(&c->out, "EXEC", NULL);
}

/* The same question as a script, for a Redis whose memory is full: it queues nothing in a MULTI
 * then. */
static void write_chunk_script(struct counter *c, const struct session *session,
    const struct count_job *job, struct chunk *chunk)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    bool sketch = is_sketch(job->metric);
    size_t keys = chunk->n * (sketch ? shard->n_pages : 1);
    struct key key;
    script_head(
        &c->out, &session->scripts, SCRIPT_READ, 1 + keys, sketch ? 1 : keys + shard->n_pages);
    key_fixed(&key, tag, "rolled", SLICE(""));
    resp_word(&c->out, key.p, key.n);
    for (size_t i = 0; i < keys; i++) {
        size_t pages = sketch ? shard->n_pages : 1;
        key_bucket(&key, tag, kind_of(job->metric), job->site,
            shard->cover.buckets[chunk->first + i / pages],
            sketch ? *shard->pages[i % pages] : whole_site);
        resp_word(&c->out, key.p, key.n);
    }
    if (sketch) {
        resp_text(&c->out, "MGET");
    }
    for (size_t i = 0; !sketch && i < keys; i++) {
        enum level level = shard->cover.buckets[chunk->first + i].level;
        resp_text(&c->out, level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
    }
    for (size_t p = 0; !sketch && p < shard->n_pages; p++) {
        resp_word(&c->out, shard->pages[p]->p, shard->pages[p]->n);
    }
    chunk->n_commands = sketch ? 1 : chunk->n;
}

/* Cut the covers into chunks. */
static bool cut_chunks(struct counter *c)
{
    c->n_chunks = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *shard = &c->shards[i];
        size_t at_once = shard->n_pages >= READS_AT_ONCE ? 1 : READS_AT_ONCE / shard->n_pages;
        for (size_t first = 0; first < shard->cover.n; first += at_once) {
            size_t left = shard->cover.n - first;
            if (!array_reserve(&c->chunks, &c->chunks_capacity, c->n_chunks, sizeof(*c->chunks))) {
                return false;
            }
            c->chunks[c->n_chunks++] = (struct chunk){
                .shard = shard, .first = first, .n = left < at_once ? left : at_once};
        }
    }
    return true;
}

/* How many chunks from @from on may be asked for at once. */
static size_t chunks_ahead(const struct counter *c, const struct count_job *job, size_t from)
{
    size_t limit = is_sketch(job->metric) ? AHEAD_SKETCHES : AHEAD_SUMS;
    size_t reads = 0;
    size_t n = 0;
    while (from + n < c->n_chunks && (n == 0 || reads < limit)) {
        reads += c->chunks[from + n].n * c->chunks[from + n].shard->n_pages;
        n++;
    }
    return n;
}

/* Queue chunks [from, to) for sending. */
static bool send_chunks(
    struct counter *c, struct session *session, const struct count_job *job, size_t from, size_t to)
{
    buffer_clear(&c->out, 64 * 1024);
    for (size_t i = from; i < to; i++) {
        if (c->by_script) {
            write_chunk_script(c, session, job, &c->chunks[i]);
        } else {
            write_chunk(c, job, &c->chunks[i]);
        }
    }
    return to <= from || redis_queue(session->redis, &c->out);
}

/* ---- taking answers ---- */

/* Do all buckets of the chunk hold by the state and the time of the reply? */
static bool holds(const struct counter *c, const struct chunk *chunk,
    const struct partition_view *view, int64_t now_s)
{
    struct cover_basis basis = basis_of(c, view, now_s);
    for (size_t i = 0; i < chunk->n; i++) {
        if (!cover_legal(&basis, chunk->shard->cover.buckets[chunk->first + i])) {
            return false;
        }
    }
    return true;
}

static bool take_sketches(struct counter *c, const struct reply *strings)
{
    for (size_t i = 0; i < strings->n; i++) {
        const struct reply *string = &strings->items[i];
        if (string->type == REPLY_TEXT && !hll_merge(&c->hll, string->text.p, string->text.n)) {
            return false;
        }
    }
    return strings->type == REPLY_ARRAY;
}

static bool take_sums(struct counter *c, const struct reply *values)
{
    for (size_t i = 0; i < values->n; i++) {
        const struct reply *value = &values->items[i];
        if (value->type == REPLY_NIL) {
            continue;
        }
        int64_t number = reply_integer(value, -1);
        if (number < 0) {
            return false;
        }
        c->sum += (uint64_t)number;
    }
    return values->type == REPLY_ARRAY;
}

static enum storage_err refuse(struct storage_job *job, const struct reply *reply)
{
    (void)snprintf(job->detail, sizeof(job->detail), "%.*s", (int)strcspn(reply->text.p, "\r\n"),
        reply->text.p);
    if (reply_is_error(reply, "LOADING") || reply_is_error(reply, "MASTERDOWN")) {
        return STORAGE_DOWN;
    }
    return STORAGE_REFUSED;
}

static enum storage_err take_chunk(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, const struct reply *reply)
{
    bool sketch = is_sketch(job->u.count.metric);
    if (reply->type == REPLY_ERROR) {
        return refuse(job, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n != chunk->n_commands + 2) {
        return STORAGE_REFUSED;
    }
    struct partition_view view;
    if (!core_parse_rolled(c->core, &reply->items[0], &view)) {
        return STORAGE_CONFIG;
    }
    int64_t time_us = reply_time_us(&reply->items[reply->n - 1]);
    core_time_seen(c->core, time_us);
    c->latest_s = time_us / 1000000;
    core_set_view(c->core, chunk->shard->partition, &view);
    if (view.known && !holds(c, chunk, &view, c->latest_s)) {
        c->stale = true;
        return STORAGE_OK;
    }
    for (size_t i = 0; i < chunk->n_commands; i++) {
        const struct reply *data = &reply->items[1 + i];
        if (data->type == REPLY_ERROR) {
            return refuse(job, data);
        }
        if (sketch ? !take_sketches(c, data) : !take_sums(c, data)) {
            (void)snprintf(job->detail, sizeof(job->detail), "a counter holds foreign data");
            return STORAGE_REFUSED;
        }
    }
    return STORAGE_OK;
}

/* Take all replies to a chunk; *ret_reply is the one with the data. */
static enum storage_err await_chunk(const struct counter *c, struct session *session,
    const struct storage_job *job, const struct chunk *chunk, const struct reply **ret_reply,
    bool *ret_full)
{
    /* MULTI, HMGET, .., TIME queued, then EXEC */
    size_t replies = c->by_script ? 1 : chunk->n_commands + 4;
    do {
        enum redis_status status = redis_await(session->redis, job->deadline_ms, ret_reply);
        if (status != REDIS_OK_STATUS) {
            return status == REDIS_TIMEOUT ? STORAGE_LATE : STORAGE_DOWN;
        }
        *ret_full = *ret_full || reply_is_error(*ret_reply, "OOM");
    } while (--replies > 0);
    return STORAGE_OK;
}

/* Send all chunks and take their answers.  All replies to what was sent are read, so that the
 * connection stays usable. */
static enum storage_err exchange(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost)
{
    enum storage_err err = STORAGE_OK;
    bool full = false;
    size_t sent = 0;
    hll_clear(&c->hll);
    c->sum = 0;
    c->stale = false;
    if (!cut_chunks(c)) {
        return STORAGE_NOMEM;
    }
    for (size_t i = 0; i < c->n_chunks; i++) {
        const struct reply *reply = NULL;
        size_t ahead = i + chunks_ahead(c, &job->u.count, i);
        ahead = ahead < sent ? sent : ahead;
        enum storage_err now = STORAGE_NOMEM;
        if (send_chunks(c, session, &job->u.count, sent, ahead)) {
            now = await_chunk(c, session, job, &c->chunks[i], &reply, &full);
        }
        sent = ahead;
        if (now != STORAGE_OK) {
            *ret_lost = true;
            return now;
        }
        now = take_chunk(c, job, &c->chunks[i], reply);
        *ret_lost = *ret_lost || reply_is_error(reply, "NOSCRIPT");
        err = err == STORAGE_OK ? now : err;
    }
    if (full && !c->by_script) {
        c->by_script = true;
        err = exchange(c, session, job, ret_lost);
        c->by_script = false;
    }
    return err;
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
        size_t pages = is_sketch(job->metric) ? shard->n_pages : 1;
        for (size_t i = 0; ok && i < shard->cover.n * pages; i++) {
            struct bucket bucket = shard->cover.buckets[i / pages];
            struct key key;
            key_bucket(&key, c->core->partitions.tag[shard->partition], kind_of(job->metric),
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
        size_t pages = is_sketch(job->metric) ? shard->n_pages : 1;
        for (int level = 0; level < LEVELS; level++) {
            job->per_level[level] += (uint32_t)(shard->cover.per_level[level] * pages);
        }
        total += shard->cover.n * pages;
    }
    job->answered = window;
    job->value = is_sketch(job->metric) ? hll_estimate(&c->hll) : c->sum;
    atomic_fetch_add(&c->core->stats.queries, 1);
    atomic_fetch_add(&c->core->stats.query_keys, (int64_t)total);
    return job->explain && !explain(c, job, total) ? STORAGE_NOMEM : STORAGE_OK;
}

/* Plan for @window, or for what is answerable around it. */
static enum storage_err plan_some(
    struct counter *c, struct count_job *job, int64_t now_s, struct window *window)
{
    enum storage_err err = plan(c, *window, now_s);
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
    return plan(c, outer, now_s);
}

enum storage_err counter_run(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost)
{
    struct count_job *count = &job->u.count;
    struct window asked = count->window;
    *ret_lost = false;
    if (!make_shards(c, count)) {
        return STORAGE_NOMEM;
    }
    while (monotonic_ms() < job->deadline_ms) {
        int64_t now_s = redis_clock_ms(&c->core->clock) / 1000;
        struct window window = asked;
        enum storage_err err = plan_some(c, count, now_s, &window);
        if (err == STORAGE_OK) {
            err = exchange(c, session, job, ret_lost);
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
