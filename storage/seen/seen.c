#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/read/page_sets.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"
#include "storage/seen/filter.h"

struct question {
    struct core *core;
    struct pipeline pipe;
    struct seen_job *job;
    unsigned partition;
    const char *tag;
    uint64_t *fingerprints; /* of the user and each page; owned */
    int64_t now_s;
    struct bucket months[SEEN_MONTHS_MAX];
    struct seen_filter filters[SEEN_MONTHS_MAX];
    unsigned n_months;
};

static bool prepare(struct question *q)
{
    struct core *core = q->core;
    const struct secret *secret = atomic_load(&core->secret);
    struct event event = {.site = q->job->site, .user = q->job->user};
    struct visitor_id user;
    if (secret == NULL || !identity_visitor(secret, ROTATE_NEVER, &event, &user)) {
        return false;
    }
    q->fingerprints = malloc((q->job->n_pages + 1) * sizeof(*q->fingerprints));
    for (size_t i = 0; q->fingerprints != NULL && i < q->job->n_pages; i++) {
        q->fingerprints[i] = seen_fingerprint(&user, page_hash(q->job->site, q->job->pages[i]));
    }
    q->partition = visitor_partition(&core->partitions, &user);
    q->tag = core->partitions.tag[q->partition];
    q->now_s = redis_clock_ms(&core->clock) / 1000;
    return true;
}

static bool is_in_log(const struct question *q, const struct reply *log)
{
    for (size_t i = 0; log->type == REPLY_TEXT && i < q->job->n_pages; i++) {
        if (seen_in_log(log->text.p, log->text.n, q->fingerprints[i])) {
            return true;
        }
    }
    return false;
}

static void ask_key(struct question *q, const char *command, struct bucket month, const char *what)
{
    struct key key;
    key_seen(&key, q->tag, q->job->site, month, what);
    resp_word(pipeline_command(&q->pipe, q->partition, command, 1), key.p, key.n);
}

/* Redis's clock says which months may hold what was acknowledged before. */
static bool read_time(struct question *q)
{
    const struct reply *time = pipeline_take(&q->pipe);
    if (time == NULL) {
        return false;
    }
    int64_t us = reply_time_us(time);
    core_time_seen(q->core, us);
    q->now_s = us / 1000000;
    return true;
}

/* Log, then the log that is being folded, then the filter: in this order (see seen/layout.h). */
static bool read_logs(struct question *q, const struct bloom_params *params)
{
    struct pipeline *p = &q->pipe;
    q->n_months = seen_months(q->now_s, q->core->config.seen.keep_s, q->months);
    for (unsigned m = 0; m < q->n_months; m++) {
        ask_key(q, "GET", q->months[m], "log");
        ask_key(q, "GET", q->months[m], "old");
        ask_key(q, "HGETALL", q->months[m], "filter");
    }
    (void)pipeline_command(p, q->partition, "TIME", 0);
    if (!pipeline_send(p, false)) {
        return false;
    }
    for (unsigned m = 0; m < q->n_months; m++) {
        for (int i = 0; i < 2; i++) {
            const struct reply *log = pipeline_take(p);
            if (log == NULL) {
                return false;
            }
            q->job->seen = q->job->seen || is_in_log(q, log);
        }
        const struct reply *filter = pipeline_take(p);
        if (filter == NULL) {
            return false;
        }
        if (!seen_filter_read(filter, params, &q->filters[m])) {
            return pipeline_foreign(p, "a filter's key");
        }
    }
    return read_time(q);
}

/* A month may have begun that we did not know of. */
static bool read_all_logs(struct question *q, const struct bloom_params *params)
{
    do {
        if (!read_logs(q, params)) {
            return false;
        }
    } while (bucket_at(zone_utc(), LEVEL_MONTH, q->now_s).start_s > q->months[0].start_s);
    return true;
}

static void ask_layer(struct question *q, unsigned m, unsigned index, uint64_t fingerprint)
{
    struct bloom_layer layer = bloom_layer(&q->filters[m].params, index);
    struct bloom_hash hash = seen_hash(fingerprint);
    struct key key;
    key_seen_bits(&key, q->tag, q->job->site, q->months[m], index, bloom_segment(&layer, hash));
    struct buffer *out =
        pipeline_command(&q->pipe, q->partition, "BITFIELD_RO", 1 + 3 * (size_t)layer.hashes);
    resp_word(out, key.p, key.n);
    for (unsigned i = 0; i < layer.hashes; i++) {
        resp_text(out, "GET");
        resp_text(out, "u1");
        resp_decimal(out, (int64_t)bloom_redis_bit(bloom_bit(&layer, hash, i)));
    }
}

/* Pages whose bits are asked for in one round trip. */
#define PAGES_AT_ONCE 32

/* The bits of pages [@first, @last). */
static bool read_bits(struct question *q, size_t first, size_t last)
{
    size_t asked = 0;
    for (size_t page = first; page < last; page++) {
        for (unsigned m = 0; m < q->n_months; m++) {
            for (unsigned i = 0; i < q->filters[m].n; i++, asked++) {
                ask_layer(q, m, i, q->fingerprints[page]);
            }
        }
    }
    if (!pipeline_send(&q->pipe, false)) {
        return false;
    }
    for (; asked > 0; asked--) {
        const struct reply *bits = pipeline_take(&q->pipe);
        if (bits == NULL) {
            return false;
        }
        bool all = bits->type == REPLY_ARRAY;
        for (size_t i = 0; i < bits->n; i++) {
            all = all && bits->items[i].integer != 0;
        }
        q->job->seen = q->job->seen || all;
    }
    return true;
}

static void read_all(struct question *q, const struct bloom_params *params)
{
    size_t n = q->job->n_pages;
    bool ok = read_all_logs(q, params);
    for (size_t i = 0; ok && !q->job->seen && i < n; i += PAGES_AT_ONCE) {
        ok = read_bits(q, i, i + PAGES_AT_ONCE < n ? i + PAGES_AT_ONCE : n);
    }
}

/* No filter says yes for any of the pages. */
static double true_negatives(const struct question *q)
{
    double of_page = 1;
    double of_all = 1;
    for (unsigned m = 0; m < q->n_months; m++) {
        of_page *= 1 - seen_filter_false_positives(&q->filters[m]);
    }
    for (size_t i = 0; i < q->job->n_pages; i++) {
        of_all *= of_page;
    }
    return of_all;
}

enum storage_err seen_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct question q = {.core = reader->core, .job = &job->u.seen};
    struct bloom_params params = seen_params(&q.core->config.seen, q.core->partitions.n);
    q.job->seen = false;
    enum storage_err err = page_set_resolve(
        reader, job, &q.job->set, q.job->site, &q.job->pages, &q.job->n_pages, ret_lost);
    if (err != STORAGE_OK) {
        return err;
    }
    if (!prepare(&q)) {
        return STORAGE_DOWN;
    }
    if (q.fingerprints == NULL) {
        return STORAGE_NOMEM;
    }
    pipeline_init(&q.pipe, &reader->session, job->deadline_ms);
    pipeline_keep_order(&q.pipe);
    read_all(&q, &params);
    free(q.fingerprints);
    q.job->false_positives = 1 - true_negatives(&q);
    return pipeline_answer(&q.pipe, job, ret_lost);
}
