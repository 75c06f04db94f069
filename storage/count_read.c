#include "storage/count_read.h"

#include <stdio.h>

#include "storage/count_cache.h"
#include "storage/count_series.h"
#include "storage/index.h"
#include "storage/script.h"

/* In one MULTI.  What Redis has gathered of an answer it sends only when the MULTI is over: 16
 * dense sketches (200 KB) are still in its processor's cache then, 256 cost it a quarter more. */
#define SKETCHES_AT_ONCE 16
#define READS_AT_ONCE    256 /* sums too */

#define AHEAD_SKETCHES 128 /* keys asked for and not answered: 1.6 MB that Redis buffers for us */
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

size_t counter_keys(const struct shard *shard, unsigned metrics, enum metric metric)
{
    if ((metrics >> metric & 1) == 0) {
        return 0;
    }
    return metric_is_sketch(metric) ? shard->n_pages : 1;
}

size_t counter_reads(const struct shard *shard, unsigned metrics, size_t n)
{
    return n * shard->n_pages * (size_t)__builtin_popcount(metrics);
}

/* The bucket of the cover at @i, or the next one that must be read. */
static size_t next_read(const struct shard *shard, size_t i)
{
    const struct run *run = NULL;
    while ((run = count_run(shard, i)) != NULL && run->recalled) {
        i = run->first + run->n;
    }
    return i;
}

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
    for (size_t i = next_read(shard, chunk->first); i < end; i = next_read(shard, i + 1)) {
        for (size_t p = 0; p < shard->n_pages; p++) {
            struct key key;
            key_bucket(&key, tag, metric_kind(metric), job->site, shard->cover.buckets[i],
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
    for (size_t i = next_read(shard, chunk->first); i < end; i = next_read(shard, i + 1)) {
        struct bucket bucket = shard->cover.buckets[i];
        struct key key;
        key_bucket(&key, tag, metric_kind(metric), job->site, bucket, counter_whole_site);
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

/* The point of the cover's bucket @i; @point is that of an earlier one. */
static size_t point_of(const struct shard *shard, size_t i, size_t point)
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
    for (size_t i = first; i < end && chunk.reads < at_once; i = next_read(shard, i + 1)) {
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
    for (first = next_read(shard, first); first < end; first = next_read(shard, first)) {
        point = point_of(shard, first, point);
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

/* Cut the covers into chunks, group by group of points. */
static bool cut_chunks(struct counter *c)
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

/* ---- taking answers ---- */

/* Do all buckets of the chunk hold by the state and the time of the reply?  (Those that are
 * recalled hold if `ver` does.) */
static bool holds(const struct counter *c, const struct chunk *chunk,
    const struct partition_view *view, int64_t now_s)
{
    struct cover_basis basis = counter_basis(c, view, now_s);
    size_t end = chunk->first + chunk->n;
    for (size_t i = next_read(chunk->shard, chunk->first); i < end;
         i = next_read(chunk->shard, i + 1)) {
        if (!cover_legal(&basis, chunk->shard->cover.buckets[i])) {
            return false;
        }
    }
    return true;
}

static enum storage_err foreign(struct storage_job *job)
{
    (void)snprintf(job->detail, sizeof(job->detail), "a counter holds foreign data");
    return STORAGE_REFUSED;
}

/* A bucket's sketches, page by page; into the run that it belongs to, if it does. */
static enum storage_err take_sketches(struct counter *c, struct storage_job *job, struct hll *run,
    enum metric metric, size_t point, const struct reply *strings, size_t n)
{
    bool nomem = false;
    for (size_t i = 0; i < n; i++) {
        struct slice string = strings[i].text;
        if (strings[i].type != REPLY_TEXT) {
            continue;
        }
        bool ok = run != NULL ? hll_merge(run, string.p, string.n)
                              : tally_sketch(&c->tally, metric, point, string.p, string.n, &nomem);
        if (!ok) {
            return nomem ? STORAGE_NOMEM : foreign(job);
        }
    }
    return STORAGE_OK;
}

/* The same of a bucket's numbers. */
static enum storage_err take_sums(struct counter *c, struct storage_job *job, uint64_t *run,
    enum metric metric, size_t point, const struct reply *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t number = values[i].type == REPLY_NIL ? 0 : reply_integer(&values[i], -1);
        if (number < 0) {
            return foreign(job);
        }
        if (run != NULL) {
            *run += (uint64_t)number;
        } else {
            tally_sum(&c->tally, metric, point, (uint64_t)number);
        }
    }
    return STORAGE_OK;
}

/* What was read of bucket @i of the cover, page by page. */
static enum storage_err take_bucket(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, const struct partition_view *view, enum metric metric, size_t i,
    size_t point, const struct reply *values)
{
    const struct shard *shard = chunk->shard;
    const struct run *run = count_run(shard, i);
    if (run != NULL && i == run->first) {
        hll_clear(&c->run[metric]);
        c->run_sum[metric] = 0;
        c->run_ver[metric] = view->ver;
    }
    enum storage_err err = metric_is_sketch(metric)
                               ? take_sketches(c, job, run != NULL ? &c->run[metric] : NULL, metric,
                                     point, values, shard->n_pages)
                               : take_sums(c, job, run != NULL ? &c->run_sum[metric] : NULL, metric,
                                     point, values, shard->n_pages);
    if (err == STORAGE_OK && run != NULL && i == run->first + run->n - 1 &&
        !count_remember(c, metric, run, view, shard)) {
        err = STORAGE_NOMEM;
    }
    return err;
}

/* The replies about one metric: all sketches in one array, or an array a bucket. */
static enum storage_err take_metric(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, const struct partition_view *view, enum metric metric,
    const struct reply *data, size_t n)
{
    const struct shard *shard = chunk->shard;
    bool sketch = metric_is_sketch(metric);
    size_t values = shard->n_pages * (sketch ? chunk->reads : 1);
    for (size_t i = 0; i < n; i++) {
        if (data[i].type != REPLY_ARRAY || data[i].n != values) {
            return foreign(job);
        }
    }
    enum storage_err err = STORAGE_OK;
    size_t end = chunk->first + chunk->n;
    size_t point = chunk->point;
    size_t at = 0;
    for (size_t i = next_read(shard, chunk->first); err == STORAGE_OK && i < end;
         i = next_read(shard, i + 1), at++) {
        point = point_of(shard, i, point);
        err = take_bucket(c, job, chunk, view, metric, i, point,
            sketch ? data[0].items + at * shard->n_pages : data[at].items);
    }
    return err;
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
static enum storage_err take_data(struct counter *c, struct storage_job *job,
    const struct chunk *chunk, const struct partition_view *view, const struct reply *data)
{
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; i < chunk->n_commands; i++) {
        if (data[i].type == REPLY_ERROR) {
            return refuse(job, &data[i]);
        }
    }
    for (int metric = 0; err == STORAGE_OK && chunk->reads > 0 && metric < METRICS; metric++) {
        if (!has_metric(chunk, metric)) {
            continue;
        }
        size_t n = metric_is_sketch((enum metric)metric) ? 1 : chunk->reads;
        err = take_metric(c, job, chunk, view, (enum metric)metric, data, n);
        data += n;
    }
    return err;
}

/* Is all that is read of a shard of one `ver`? */
static void note_ver(struct shard *shard, const struct partition_view *view)
{
    shard->mixed = shard->mixed || (shard->seen && !ver_equal(&shard->seen_ver, &view->ver));
    shard->seen = true;
    shard->seen_state = view->state;
    shard->seen_ver = view->known ? view->ver : (struct ver){.n = 0};
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
    if (chunk->shard->recalled && !ver_equal(&chunk->shard->view.ver, &view.ver)) {
        c->stale = true;
        return STORAGE_OK;
    }
    note_ver(chunk->shard, &view);
    return take_data(c, job, chunk, &view, &reply->items[1]);
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
    count_recall(c, &job->u.count);
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
