#include "storage/count/read.h"

#include "storage/count/chunk.h"
#include "storage/count/recall.h"
#include "storage/count/series.h"
#include "storage/count/take.h"
#include "storage/redis/resp.h"
#include "storage/redis/script.h"

#define AHEAD_SKETCHES 128 /* keys asked for and not answered: 1.6 MB that Redis buffers for us */
#define AHEAD_SUMS     20000

static void read_sketches(
    struct counter *c, const struct count_job *job, struct chunk *chunk, enum metric metric)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    size_t end = chunk->first + chunk->n;
    if (chunk->reads == 0) {
        return;
    }
    resp_head(&c->out, 1 + chunk->reads * shard->n_pages);
    resp_text(&c->out, "MGET");
    for (size_t i = chunk_next_read(shard, chunk->first); i < end;
         i = chunk_next_read(shard, i + 1)) {
        for (size_t p = 0; p < shard->n_pages; p++) {
            struct key key;
            key_bucket(&key, tag, metric_kind(metric), job->asked.site, shard->cover.buckets[i],
                *shard->pages[p]);
            resp_word(&c->out, key.p, key.n);
        }
    }
    chunk->n_commands++;
}

static void read_sums(
    struct counter *c, const struct count_job *job, struct chunk *chunk, enum metric metric)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    size_t end = chunk->first + chunk->n;
    for (size_t i = chunk_next_read(shard, chunk->first); i < end;
         i = chunk_next_read(shard, i + 1)) {
        struct bucket bucket = shard->cover.buckets[i];
        struct key key;
        key_bucket(&key, tag, metric_kind(metric), job->asked.site, bucket, counter_whole_site);
        resp_head(&c->out, 2 + shard->n_pages);
        resp_text(&c->out, bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
        resp_word(&c->out, key.p, key.n);
        for (size_t p = 0; p < shard->n_pages; p++) {
            resp_word(&c->out, shard->pages[p]->p, shard->pages[p]->n);
        }
    }
    chunk->n_commands += chunk->reads;
}

static void write_chunk(struct counter *c, const struct count_job *job, struct chunk *chunk)
{
    resp_command(&c->out, "MULTI", NULL);
    rolled_ask(&c->out, c->core->partitions.tag[chunk->shard->partition], 0);
    chunk->n_commands = 0;
    for (int metric = 0; metric < METRICS; metric++) {
        if (!chunk_has_metric(chunk, metric)) {
            continue;
        }
        if (metric_is_sketch((enum metric)metric)) {
            read_sketches(c, job, chunk, (enum metric)metric);
        } else {
            read_sums(c, job, chunk, (enum metric)metric);
        }
    }
    resp_command(&c->out, "TIME", NULL);
    resp_command(&c->out, "EXEC", NULL);
}

/* The same question as a script, for a Redis whose memory is full: it queues nothing in a MULTI
 * then.  Such a chunk has one metric. */
static void write_chunk_script(struct counter *c, const struct session *session,
    const struct count_job *job, struct chunk *chunk)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    enum metric metric = (enum metric)__builtin_ctz(chunk->metrics);
    bool sketch = metric_is_sketch(metric);
    size_t keys = chunk->n * (sketch ? shard->n_pages : 1);
    struct key key;
    script_head(
        &c->out, &session->scripts, SCRIPT_READ, 1 + keys, sketch ? 1 : keys + shard->n_pages);
    key_fixed(&key, tag, "rolled", SLICE(""));
    resp_word(&c->out, key.p, key.n);
    for (size_t i = 0; i < keys; i++) {
        size_t pages = sketch ? shard->n_pages : 1;
        key_bucket(&key, tag, metric_kind(metric), job->asked.site,
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

/* How many chunks from @from on may be asked for at once. */
static size_t chunks_ahead(const struct counter *c, size_t from)
{
    size_t sketches = 0;
    size_t sums = 0;
    size_t n = 0;
    while (from + n < c->n_chunks && (n == 0 || (sketches < AHEAD_SKETCHES && sums < AHEAD_SUMS))) {
        const struct chunk *chunk = &c->chunks[from + n];
        sketches += counter_reads(chunk->shard, chunk->metrics & METRICS_SKETCHES, chunk->reads);
        sums += counter_reads(chunk->shard, chunk->metrics & ~METRICS_SKETCHES, chunk->reads);
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

/* ---- the whole reading ---- */

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
    tally_clear(&c->tally);
    c->stale = false;
    count_recall(c, &job->u.count);
    if (!chunks_cut(c)) {
        return STORAGE_NOMEM;
    }
    for (size_t i = 0; i < c->n_chunks; i++) {
        const struct reply *reply = NULL;
        size_t ahead = i + chunks_ahead(c, i);
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
        now = chunk_take(c, job, &c->chunks[i], reply);
        *ret_lost = *ret_lost || reply_is_error(reply, "NOSCRIPT");
        err = err == STORAGE_OK ? now : err;
        if (c->chunks[i].ends_group) {
            tally_end_group(&c->tally, c->chunks[i].point);
        }
    }
    /* what was recalled of points of which nothing was read */
    tally_end_group(&c->tally, 0);
    tally_end_group(&c->tally, c->tally.n_points - 1);
    if (err == STORAGE_OK && !c->stale && !full) {
        series_remember(c, &job->u.count);
    }
    if (full && !c->by_script) {
        c->by_script = true;
        err = counter_read(c, session, job, ret_lost);
        c->by_script = false;
    }
    return err;
}
