#include "storage/count_read.h"

#include <stdio.h>

#include "storage/count_cache.h"
#include "storage/index.h"
#include "storage/script.h"

/* In one MULTI; 64 dense sketches are 800 KB, and 256 cost Redis a quarter more. */
#define SKETCHES_AT_ONCE 64
#define SUMS_AT_ONCE     256

#define AHEAD_SKETCHES 768 /* keys asked for and not answered: 9 MB that Redis buffers for us */
#define AHEAD_SUMS     20000

const struct slice counter_whole_site = {"", 0};

bool metric_is_sketch(enum metric metric)
{
    return metric == METRIC_UV || metric == METRIC_IPS;
}

enum key_kind metric_kind(enum metric metric)
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

struct cover_basis counter_basis(
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

/* ---- asking ---- */

/* The bucket of the cover at @i, or the next one that must be read. */
static size_t next_read(const struct shard *shard, size_t i)
{
    const struct run *run = NULL;
    while ((run = count_run(shard, i)) != NULL && run->recalled) {
        i = run->first + run->n;
    }
    return i;
}

static void read_sketches(struct counter *c, const struct count_job *job, struct chunk *chunk)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    chunk->n_commands = chunk->reads == 0 ? 0 : 1;
    if (chunk->reads == 0) {
        return;
    }
    resp_head(&c->out, 1 + chunk->reads * shard->n_pages);
    resp_text(&c->out, "MGET");
    size_t end = chunk->first + chunk->n;
    for (size_t i = next_read(shard, chunk->first); i < end; i = next_read(shard, i + 1)) {
        for (size_t p = 0; p < shard->n_pages; p++) {
            struct key key;
            key_bucket(&key, tag, metric_kind(job->metric), job->site, shard->cover.buckets[i],
                *shard->pages[p]);
            resp_word(&c->out, key.p, key.n);
        }
    }
}

static void read_sums(struct counter *c, const struct count_job *job, struct chunk *chunk)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    size_t end = chunk->first + chunk->n;
    for (size_t i = next_read(shard, chunk->first); i < end; i = next_read(shard, i + 1)) {
        struct bucket bucket = shard->cover.buckets[i];
        struct key key;
        key_bucket(&key, tag, metric_kind(job->metric), job->site, bucket, counter_whole_site);
        resp_head(&c->out, 2 + shard->n_pages);
        resp_text(&c->out, bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
        resp_word(&c->out, key.p, key.n);
        for (size_t p = 0; p < shard->n_pages; p++) {
            resp_word(&c->out, shard->pages[p]->p, shard->pages[p]->n);
        }
    }
    chunk->n_commands = chunk->reads;
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
    if (metric_is_sketch(job->metric)) {
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
    bool sketch = metric_is_sketch(job->metric);
    size_t keys = chunk->n * (sketch ? shard->n_pages : 1);
    struct key key;
    script_head(
        &c->out, &session->scripts, SCRIPT_READ, 1 + keys, sketch ? 1 : keys + shard->n_pages);
    key_fixed(&key, tag, "rolled", SLICE(""));
    resp_word(&c->out, key.p, key.n);
    for (size_t i = 0; i < keys; i++) {
        size_t pages = sketch ? shard->n_pages : 1;
        key_bucket(&key, tag, metric_kind(job->metric), job->site,
            shard->cover.buckets[chunk->first + i / pages],
            sketch ? *shard->pages[i % pages] : counter_whole_site);
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

/* Up to @at_once buckets that must be read from @first on, and all remembered ones among them. */
static struct chunk cut_chunk(struct shard *shard, size_t first, size_t at_once)
{
    struct chunk chunk = {.shard = shard, .first = first};
    size_t end = first;
    for (size_t i = next_read(shard, first); i < shard->cover.n; i = next_read(shard, i + 1)) {
        if (chunk.reads == at_once) {
            break;
        }
        chunk.reads++;
        end = i + 1;
    }
    /* what is remembered behind the last one is proved with it */
    chunk.n = next_read(shard, end) - first;
    return chunk;
}

/* Cut the covers into chunks. */
static bool cut_chunks(struct counter *c, enum metric metric)
{
    c->n_chunks = 0;
    c->reads = 0;
    size_t limit = metric_is_sketch(metric) ? SKETCHES_AT_ONCE : SUMS_AT_ONCE;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *shard = &c->shards[i];
        size_t at_once = shard->n_pages >= limit ? 1 : limit / shard->n_pages;
        for (size_t first = 0; first < shard->cover.n;) {
            if (!array_reserve(&c->chunks, &c->chunks_capacity, c->n_chunks, sizeof(*c->chunks))) {
                return false;
            }
            struct chunk chunk = cut_chunk(shard, first, at_once);
            first += chunk.n;
            c->reads += chunk.reads * (metric_is_sketch(metric) ? shard->n_pages : 1);
            c->chunks[c->n_chunks++] = chunk;
        }
    }
    return true;
}

/* How many chunks from @from on may be asked for at once. */
static size_t chunks_ahead(const struct counter *c, const struct count_job *job, size_t from)
{
    size_t limit = metric_is_sketch(job->metric) ? AHEAD_SKETCHES : AHEAD_SUMS;
    size_t reads = 0;
    size_t n = 0;
    while (from + n < c->n_chunks && (n == 0 || reads < limit)) {
        reads += c->chunks[from + n].reads * c->chunks[from + n].shard->n_pages;
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
    struct cover_basis basis = counter_basis(c, view, now_s);
    for (size_t i = 0; i < chunk->n; i++) {
        if (!cover_legal(&basis, chunk->shard->cover.buckets[chunk->first + i])) {
            return false;
        }
    }
    return true;
}

static bool take_sketches(struct hll *hll, const struct reply *strings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strings[i].type == REPLY_TEXT &&
            !hll_merge(hll, strings[i].text.p, strings[i].text.n)) {
            return false;
        }
    }
    return true;
}

static bool take_sums(uint64_t *sum, const struct reply *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t number = values[i].type == REPLY_NIL ? 0 : reply_integer(&values[i], -1);
        if (number < 0) {
            return false;
        }
        *sum += (uint64_t)number;
    }
    return true;
}

/* What was read of bucket @i of the cover, page by page. */
static bool take_bucket(struct counter *c, const struct count_job *job, const struct chunk *chunk,
    const struct partition_view *view, size_t i, const struct reply *values)
{
    const struct shard *shard = chunk->shard;
    const struct run *run = count_run(shard, i);
    if (run != NULL && i == run->first) {
        hll_clear(&c->run);
        c->run_sum = 0;
        c->run_ver = view->ver;
    }
    bool ok = metric_is_sketch(job->metric)
                  ? take_sketches(run != NULL ? &c->run : &c->hll, values, shard->n_pages)
                  : take_sums(run != NULL ? &c->run_sum : &c->sum, values, shard->n_pages);
    if (ok && run != NULL && i == run->first + run->n - 1) {
        count_remember(c, job, run, view, shard);
    }
    return ok;
}

/* The replies to a chunk's commands: all sketches in one array, or an array a bucket. */
static bool take_buckets(struct counter *c, const struct count_job *job, const struct chunk *chunk,
    const struct partition_view *view, const struct reply *data)
{
    const struct shard *shard = chunk->shard;
    bool sketch = metric_is_sketch(job->metric);
    size_t values = shard->n_pages * (sketch ? chunk->reads : 1);
    for (size_t i = 0; i < chunk->n_commands; i++) {
        if (data[i].type != REPLY_ARRAY || data[i].n != values) {
            return false;
        }
    }
    size_t end = chunk->first + chunk->n;
    size_t at = 0;
    for (size_t i = next_read(shard, chunk->first); i < end; i = next_read(shard, i + 1), at++) {
        const struct reply *items = sketch ? data[0].items + at * shard->n_pages : data[at].items;
        if (!take_bucket(c, job, chunk, view, i, items)) {
            return false;
        }
    }
    return true;
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
    if (chunk->shard->recalled && !ver_equal(&chunk->shard->ver, &view.ver)) {
        c->stale = true;
        return STORAGE_OK;
    }
    for (size_t i = 0; i < chunk->n_commands; i++) {
        if (reply->items[1 + i].type == REPLY_ERROR) {
            return refuse(job, &reply->items[1 + i]);
        }
    }
    if (!take_buckets(c, &job->u.count, chunk, &view, reply->items + 1)) {
        (void)snprintf(job->detail, sizeof(job->detail), "a counter holds foreign data");
        return STORAGE_REFUSED;
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
enum storage_err counter_read(
    struct counter *c, struct session *session, struct storage_job *job, bool *ret_lost)
{
    enum storage_err err = STORAGE_OK;
    bool full = false;
    size_t sent = 0;
    hll_clear(&c->hll);
    c->sum = 0;
    c->stale = false;
    for (size_t i = 0; i < c->n_shards; i++) {
        count_recall(c, &job->u.count, &c->shards[i]);
    }
    if (!cut_chunks(c, job->u.count.metric)) {
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
        err = counter_read(c, session, job, ret_lost);
        c->by_script = false;
    }
    return err;
}
