#include "storage/count_read.h"

#include <stdio.h>

#include "storage/index.h"
#include "storage/script.h"

#define READS_AT_ONCE  256 /* in one MULTI: 3 MB of dense sketches */
#define AHEAD_SKETCHES 768 /* keys asked for and not answered: 9 MB that Redis buffers for us */
#define AHEAD_SUMS     20000

const struct slice counter_whole_site = {"", 0};

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
        .zone = c->zone,
        .state = &view->state,
        .retention = &view->retention,
        .now_s = now_s,
        .empty_from_s = now_s + STORAGE_FUTURE_MAX_S + 3600,
    };
}

/* ---- asking ---- */

static bool has_metric(const struct chunk *chunk, int metric)
{
    return (chunk->metrics >> metric & 1) != 0;
}

size_t counter_reads(const struct shard *shard, unsigned metrics, size_t n)
{
    return n * shard->n_pages * (size_t)__builtin_popcount(metrics);
}

static void read_sketches(
    struct counter *c, const struct count_job *job, struct chunk *chunk, enum metric metric)
{
    const struct shard *shard = chunk->shard;
    const char *tag = c->core->partitions.tag[shard->partition];
    resp_head(&c->out, 1 + chunk->n * shard->n_pages);
    resp_text(&c->out, "MGET");
    for (size_t i = 0; i < chunk->n; i++) {
        for (size_t p = 0; p < shard->n_pages; p++) {
            struct key key;
            key_bucket(&key, tag, metric_kind(metric), job->site,
                shard->cover.buckets[chunk->first + i], *shard->pages[p]);
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
    for (size_t i = 0; i < chunk->n; i++) {
        struct bucket bucket = shard->cover.buckets[chunk->first + i];
        struct key key;
        key_bucket(&key, tag, metric_kind(metric), job->site, bucket, counter_whole_site);
        resp_head(&c->out, 2 + shard->n_pages);
        resp_text(&c->out, bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
        resp_word(&c->out, key.p, key.n);
        for (size_t p = 0; p < shard->n_pages; p++) {
            resp_word(&c->out, shard->pages[p]->p, shard->pages[p]->n);
        }
    }
    chunk->n_commands += chunk->n;
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
    chunk->n_commands = 0;
    for (int metric = 0; metric < METRICS; metric++) {
        if (!has_metric(chunk, metric)) {
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
        key_bucket(&key, tag, metric_kind(metric), job->site,
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

/* Cut a shard's buckets [first, end), the first one of @point, into chunks for @metrics. */
static bool cut_buckets(struct counter *c, struct shard *shard, unsigned metrics, size_t first,
    size_t end, size_t point)
{
    size_t each = counter_reads(shard, metrics, 1);
    size_t at_once = each >= READS_AT_ONCE ? 1 : READS_AT_ONCE / each;
    for (; first < end; first += at_once) {
        if (!array_reserve(&c->chunks, &c->chunks_capacity, c->n_chunks, sizeof(*c->chunks))) {
            return false;
        }
        while (shard->ends[point] <= first) {
            point++;
        }
        c->chunks[c->n_chunks++] = (struct chunk){.shard = shard,
            .metrics = metrics,
            .first = first,
            .n = end - first < at_once ? end - first : at_once,
            .point = point};
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

/* Cut the covers into chunks, group by group of points. */
static bool cut_chunks(struct counter *c)
{
    c->n_chunks = 0;
    for (size_t point = 0; point < c->tally.n_points; point += TALLY_GROUP) {
        for (size_t i = 0; i < c->n_shards; i++) {
            if (!cut_group(c, &c->shards[i], point)) {
                return false;
            }
        }
        c->chunks[c->n_chunks - 1].ends_group = true;
    }
    return true;
}

/* How many chunks from @from on may be asked for at once. */
static size_t chunks_ahead(const struct counter *c, size_t from)
{
    size_t sketches = 0;
    size_t sums = 0;
    size_t n = 0;
    while (from + n < c->n_chunks && (n == 0 || (sketches < AHEAD_SKETCHES && sums < AHEAD_SUMS))) {
        const struct chunk *chunk = &c->chunks[from + n];
        unsigned of_sketches = chunk->metrics & (1u << METRIC_UV | 1u << METRIC_IPS);
        sketches += counter_reads(chunk->shard, of_sketches, chunk->n);
        sums += counter_reads(chunk->shard, chunk->metrics & ~of_sketches, chunk->n);
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

/* The point of the chunk's @i-th bucket; @point is that of an earlier one. */
static size_t point_of(const struct chunk *chunk, size_t i, size_t point)
{
    while (chunk->shard->ends[point] <= chunk->first + i) {
        point++;
    }
    return point;
}

static enum storage_err foreign(struct storage_job *job)
{
    (void)snprintf(job->detail, sizeof(job->detail), "a counter holds foreign data");
    return STORAGE_REFUSED;
}

/* The reply to one MGET: bucket by bucket, page by page. */
static enum storage_err take_sketches(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, enum metric metric, const struct reply *strings)
{
    size_t pages = chunk->shard->n_pages;
    size_t point = chunk->point;
    bool nomem = false;
    if (strings->type != REPLY_ARRAY || strings->n != chunk->n * pages) {
        return foreign(job);
    }
    for (size_t i = 0; i < strings->n; i++) {
        const struct reply *string = &strings->items[i];
        point = point_of(chunk, i / pages, point);
        if (string->type == REPLY_TEXT &&
            !tally_sketch(&c->tally, metric, point, string->text.p, string->text.n, &nomem)) {
            return nomem ? STORAGE_NOMEM : foreign(job);
        }
    }
    return STORAGE_OK;
}

/* The reply for one bucket: page by page. */
static enum storage_err take_sums(struct counter *c, struct storage_job *job, enum metric metric,
    size_t point, const struct reply *values)
{
    if (values->type != REPLY_ARRAY) {
        return foreign(job);
    }
    for (size_t i = 0; i < values->n; i++) {
        const struct reply *value = &values->items[i];
        if (value->type == REPLY_NIL) {
            continue;
        }
        int64_t number = reply_integer(value, -1);
        if (number < 0) {
            return foreign(job);
        }
        tally_sum(&c->tally, metric, point, (uint64_t)number);
    }
    return STORAGE_OK;
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

/* The replies between HMGET and TIME, in the order of asking. */
static enum storage_err take_data(
    struct counter *c, struct storage_job *job, const struct chunk *chunk, const struct reply *data)
{
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; i < chunk->n_commands; i++) {
        if (data[i].type == REPLY_ERROR) {
            return refuse(job, &data[i]);
        }
    }
    for (int metric = 0; metric < METRICS; metric++) {
        if (!has_metric(chunk, metric)) {
            continue;
        }
        if (metric_is_sketch((enum metric)metric)) {
            err = take_sketches(c, job, chunk, (enum metric)metric, data++);
        }
        for (size_t i = 0, point = chunk->point;
             err == STORAGE_OK && !metric_is_sketch((enum metric)metric) && i < chunk->n; i++) {
            point = point_of(chunk, i, point);
            err = take_sums(c, job, (enum metric)metric, point, data++);
        }
        if (err != STORAGE_OK) {
            return err;
        }
    }
    return STORAGE_OK;
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
    return take_data(c, job, chunk, &reply->items[1]);
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
    tally_clear(&c->tally);
    c->stale = false;
    if (!cut_chunks(c)) {
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
        now = take_chunk(c, job, &c->chunks[i], reply);
        *ret_lost = *ret_lost || reply_is_error(reply, "NOSCRIPT");
        err = err == STORAGE_OK ? now : err;
        if (c->chunks[i].ends_group) {
            tally_end_group(&c->tally, c->chunks[i].point);
        }
    }
    if (full && !c->by_script) {
        c->by_script = true;
        err = counter_read(c, session, job, ret_lost);
        c->by_script = false;
    }
    return err;
}
