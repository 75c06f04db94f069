#include "storage/seen/fold_log.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/reply_fault.h"
#include "storage/read/cache.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define LOGS_MAX    8           /* the longest log that is waited for, in SEEN_LOG_BYTES */
#define BYTES_A_LOG (512 << 10) /* of bits that are written anew */

/* How a step went. */
enum fold_step {
    STEP_DONE,
    STEP_YIELD, /* another process folds, or Redis refuses: leave it */
    STEP_LOST,
};

void fold_log_init(struct fold_log *f, struct core *core)
{
    *f = (struct fold_log){.core = core};
    buffer_init(&f->out);
    buffer_init(&f->bits);
}

void fold_log_release(struct fold_log *f)
{
    buffer_release(&f->out);
    buffer_release(&f->bits);
    free(f->pending);
    f->pending = NULL;
}

/* ---- asking ---- */

/* Send out, await one reply. */
static enum fold_step ask(struct fold_log *f, const struct reply **ret)
{
    if (redis_ask(f->session->redis, &f->out, f->deadline_ms, ret) != REDIS_OK_STATUS) {
        return STEP_LOST;
    }
    if ((*ret)->type != REPLY_ERROR) {
        return STEP_DONE;
    }
    server_refused(f->core, &f->session->server, f->partition, *ret);
    if (f->core->is_spread && (reply_is_error(*ret, "MOVED") || reply_is_error(*ret, "ASK") ||
                                  reply_is_error(*ret, "TRYAGAIN"))) {
        return STEP_YIELD; /* another time, when the slot has moved */
    }
    if (!reply_is_error(*ret, "ERR no such key")) { /* RENAMENX: another process has sealed it */
        core_notice(f->core, STORAGE_SEEN_FAILED, (*ret)->text.p);
    }
    return reply_fault(*ret) == REPLY_RECONNECT ? STEP_LOST : STEP_YIELD;
}

static void put_key(struct fold_log *f, const char *what)
{
    struct key key;
    key_seen(&key, f->tag, f->site, f->month, what);
    resp_word(&f->out, key.p, key.n);
}

static enum fold_step length(struct fold_log *f, const char *what, size_t *ret)
{
    const struct reply *reply = NULL;
    resp_head(&f->out, 2);
    resp_text(&f->out, "STRLEN");
    put_key(f, what);
    enum fold_step step = ask(f, &reply);
    *ret = step == STEP_DONE ? (size_t)reply_integer(reply, 0) : 0;
    return step;
}

static enum fold_step read_filter(struct fold_log *f)
{
    const struct reply *reply = NULL;
    struct bloom_params params =
        seen_params(&f->core->config.seen, visitor_partitions(f->core->partitions.n));
    resp_head(&f->out, 2);
    resp_text(&f->out, "HGETALL");
    put_key(f, "filter");
    enum fold_step step = ask(f, &reply);
    if (step == STEP_DONE && !seen_filter_read(reply, &params, &f->filter)) {
        return STEP_YIELD;
    }
    return step;
}

/* Seal the log: from now on it is `old`.  There may be one already. */
static enum fold_step seal(struct fold_log *f)
{
    const struct reply *reply = NULL;
    resp_head(&f->out, 3);
    resp_text(&f->out, "RENAMENX");
    put_key(f, "log");
    put_key(f, "old");
    return ask(f, &reply);
}

/* The next fingerprints of the sealed log into pending. */
static enum fold_step read_piece(struct fold_log *f, size_t from)
{
    const struct reply *reply = NULL;
    resp_head(&f->out, 4);
    resp_text(&f->out, "GETRANGE");
    put_key(f, "old");
    resp_decimal(&f->out, (int64_t)from);
    resp_decimal(&f->out, (int64_t)(from + FOLD_PIECE * sizeof(*f->pending) - 1));
    enum fold_step step = ask(f, &reply);
    f->n_pending = 0;
    if (step == STEP_DONE && reply->text.n > 0) {
        f->n_pending = reply->text.n / sizeof(*f->pending);
        memcpy(f->pending, reply->text.p, f->n_pending * sizeof(*f->pending));
    }
    return step;
}

/* ---- bits ---- */

static void put_bits_key(struct fold_log *f, unsigned index, uint64_t segment)
{
    struct key key;
    key_seen_bits(&key, f->tag, f->site, f->month, index, segment);
    resp_word(&f->out, key.p, key.n);
}

/* A string of bits into f->bits, as long as it will ever be. */
static enum fold_step read_bits(
    struct fold_log *f, const struct bloom_layer *layer, unsigned index, uint64_t segment)
{
    const struct reply *reply = NULL;
    size_t n = layer->bits / 8;
    resp_head(&f->out, 2);
    resp_text(&f->out, "GET");
    put_bits_key(f, index, segment);
    enum fold_step step = ask(f, &reply);
    if (step != STEP_DONE) {
        return step;
    }
    buffer_clear(&f->bits, SEEN_SEGMENT_BITS / 8 * 2);
    char *p = buffer_grow(&f->bits, n);
    if (p == NULL || (reply->type != REPLY_NIL && reply->text.n > n)) {
        return STEP_YIELD;
    }
    size_t have = reply->type == REPLY_NIL ? 0 : reply->text.n;
    if (have > 0) {
        memcpy(p, reply->text.p, have);
    }
    memset(p + have, 0, n - have);
    return STEP_DONE;
}

/* Where bit @bit stands in a string of Redis. */
static char *byte_of(struct fold_log *f, uint64_t bit)
{
    return &f->bits.p[bit / 8];
}

static char mask_of(uint64_t bit)
{
    return (char)(1u << (bit % 8));
}

static bool is_in(struct fold_log *f, const struct bloom_layer *layer, struct bloom_hash hash)
{
    for (unsigned i = 0; i < layer->hashes; i++) {
        uint64_t bit = bloom_bit(layer, hash, i);
        if ((*byte_of(f, bit) & mask_of(bit)) == 0) {
            return false;
        }
    }
    return true;
}

static void put_in(struct fold_log *f, const struct bloom_layer *layer, struct bloom_hash hash)
{
    for (unsigned i = 0; i < layer->hashes; i++) {
        uint64_t bit = bloom_bit(layer, hash, i);
        *byte_of(f, bit) = (char)(*byte_of(f, bit) | mask_of(bit));
    }
}

/* ---- what questions remember ---- */

static void exists(void *data, const void *string, size_t n)
{
    (void)data;
    (void)string;
    (void)n;
}

/* A string that questions have lately read is remembered as it is now, under the `ver` that the
 * end of the fold sets: so the next question need not read it again.  If the fold does not come to
 * that end, nobody ever finds that `ver` in Redis. */
static void remember(struct fold_log *f, unsigned index, uint64_t segment)
{
    struct key key;
    if (f->core->cache == NULL) {
        return;
    }
    key_seen_bits(&key, f->tag, f->site, f->month, index, segment);
    struct cache_id id = cache_id(f->core->cache, key.p, key.n);
    if (cache_get(f->core->cache, &id, &f->begin, exists, NULL) ||
        cache_get(f->core->cache, &id, &f->end, exists, NULL)) {
        cache_put(f->core->cache, &id, &f->end, f->bits.p, f->bits.n);
    }
}

/* ---- writing ---- */

static struct ver random_ver(void)
{
    unsigned char random[SEEN_VER_TEXT / 2];
    struct ver ver = {.n = SEEN_VER_TEXT};
    char text[SEEN_VER_TEXT + 1];
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(text, sizeof(text), random, sizeof(random));
    memcpy(ver.text, text, SEEN_VER_TEXT);
    return ver;
}

/* seen_fold.lua: the bits at hand with the filter's new figures (@index, @segment), or the end
 * (@end). */
static enum fold_step write_step(struct fold_log *f, bool end, unsigned index, uint64_t segment)
{
    struct ver ver = end ? f->end : random_ver();
    char number[32];
    const struct reply *reply = NULL;
    struct seen_filter *filter = &f->filter;
    script_head(&f->out, &f->session->scripts, SCRIPT_SEEN_FOLD, 2, 4 + 10);
    put_key(f, "filter");
    if (end) {
        put_key(f, "old");
    } else {
        put_bits_key(f, index, segment);
    }
    resp_text(&f->out, filter->ver);
    resp_word(&f->out, ver.text, ver.n);
    resp_decimal(&f->out, seen_expire_ms(f->month, f->core->config.seen.keep_s));
    resp_word(&f->out, f->bits.p, end ? 0 : f->bits.n);
    resp_text(&f->out, "capacity");
    resp_decimal(&f->out, (int64_t)filter->params.capacity);
    resp_text(&f->out, "error");
    resp_word(
        &f->out, number, (size_t)snprintf(number, sizeof(number), "%.17g", filter->params.error));
    resp_text(&f->out, "rules");
    resp_decimal(&f->out, filter->rules);
    resp_text(&f->out, "n");
    resp_decimal(&f->out, filter->n);
    resp_decimal(&f->out, index);
    resp_decimal(&f->out, (int64_t)filter->items[index]);
    enum fold_step step = ask(f, &reply);
    if (step != STEP_DONE) {
        return step;
    }
    memcpy(filter->ver, ver.text, ver.n);
    filter->ver[ver.n] = '\0';
    return reply_integer(reply, 0) == 1 ? STEP_DONE : STEP_YIELD;
}

/* ---- folding ---- */

/* Of the pending fingerprints that belong to the segment, drop those that are in it.  With @add put
 * the others in, as long as there is room. */
static enum fold_step fold_segment(
    struct fold_log *f, const struct bloom_layer *layer, unsigned index, uint64_t segment, bool add)
{
    size_t left = 0;
    uint64_t before = f->filter.items[index];
    enum fold_step step = read_bits(f, layer, index, segment);
    if (step != STEP_DONE) {
        return step;
    }
    for (size_t i = 0; i < f->n_pending; i++) {
        struct bloom_hash hash = seen_hash(f->pending[i]);
        bool here = bloom_segment(layer, hash) == segment;
        bool in = here && is_in(f, layer, hash);
        if (here && !in && add && f->filter.items[index] < layer->capacity) {
            put_in(f, layer, hash);
            f->filter.items[index]++;
            in = true;
        }
        if (!in) {
            f->pending[left++] = f->pending[i];
        }
    }
    f->n_pending = left;
    if (f->filter.items[index] > before) {
        step = write_step(f, false, index, segment);
    }
    if (step == STEP_DONE) {
        remember(f, index, segment);
    }
    return step;
}

static bool has_pending(const struct fold_log *f, const struct bloom_layer *layer, uint64_t segment)
{
    for (size_t i = 0; i < f->n_pending; i++) {
        if (layer->segments == 1 || bloom_segment(layer, seen_hash(f->pending[i])) == segment) {
            return true;
        }
    }
    return false;
}

static enum fold_step fold_layer(struct fold_log *f, unsigned index, bool add)
{
    struct bloom_layer layer = bloom_layer(&f->filter.params, index);
    for (uint64_t segment = 0; segment < layer.segments; segment++) {
        enum fold_step step = STEP_DONE;
        if (has_pending(f, &layer, segment)) {
            step = fold_segment(f, &layer, index, segment, add);
        }
        if (step != STEP_DONE) {
            return step;
        }
    }
    return STEP_DONE;
}

/* Put all that is pending into the filter.  What is in an older layer needs no place in the newest.
 * A layer is begun when the newest is full. */
static enum fold_step fold_piece(struct fold_log *f)
{
    enum fold_step step = STEP_DONE;
    for (unsigned i = 0; step == STEP_DONE && i + 1 < f->filter.n; i++) {
        step = fold_layer(f, i, false);
    }
    f->filter.n = f->filter.n == 0 ? 1 : f->filter.n;
    while (step == STEP_DONE) {
        step = fold_layer(f, f->filter.n - 1, true);
        if (step != STEP_DONE || f->n_pending == 0) {
            break;
        }
        if (f->filter.n == BLOOM_LAYERS_MAX) {
            return STEP_YIELD; /* the log stays: it is exact */
        }
        f->filter.n++;
    }
    return step;
}

/* Fold all of the sealed log, then delete it. */
static enum fold_step fold_old(struct fold_log *f)
{
    size_t from = 0;
    enum fold_step step = read_filter(f);
    f->begin = seen_filter_ver(&f->filter);
    f->end = random_ver();
    while (step == STEP_DONE) {
        step = read_piece(f, from);
        size_t n = f->n_pending;
        if (step != STEP_DONE || n == 0) {
            break;
        }
        step = fold_piece(f);
        from += n * sizeof(*f->pending);
    }
    if (step == STEP_DONE) {
        f->filter.n = f->filter.n == 0 ? 1 : f->filter.n;
        step = write_step(f, true, f->filter.n - 1, 0);
    }
    if (step == STEP_DONE) {
        atomic_fetch_add(&f->core->stats.seen_folds, 1);
        atomic_fetch_add(&f->core->stats.seen_folded, (int64_t)(from / sizeof(*f->pending)));
    }
    return step;
}

/* A larger filter is worth a longer log: each fold writes the strings of its newest layer anew. */
static size_t worth_bytes(const struct fold_log *f)
{
    uint64_t logs = 1;
    if (f->filter.n > 0) {
        struct bloom_layer newest = bloom_layer(&f->filter.params, f->filter.n - 1);
        logs = 1 + newest.bits / 8 * newest.segments / BYTES_A_LOG;
    }
    return (logs > LOGS_MAX ? LOGS_MAX : logs) * SEEN_LOG_BYTES;
}

static enum fold_step fold(struct fold_log *f)
{
    size_t old = 0;
    size_t log = 0;
    enum fold_step step = length(f, "old", &old);
    if (step == STEP_DONE && old > 0) { /* another process died at it, or is at it */
        step = fold_old(f);
    }
    if (step == STEP_DONE) {
        step = length(f, "log", &log);
    }
    if (step == STEP_DONE) {
        step = read_filter(f);
    }
    if (step != STEP_DONE || log < worth_bytes(f)) {
        return step;
    }
    step = seal(f);
    return step == STEP_DONE ? fold_old(f) : step;
}

bool fold_log(struct fold_log *f, struct session *session, unsigned partition, struct slice site,
    struct bucket month, int64_t deadline_ms)
{
    f->session = session;
    f->partition = partition;
    f->tag = f->core->partitions.tag[partition];
    f->site = site;
    f->month = month;
    f->deadline_ms = deadline_ms;
    if (f->pending == NULL) {
        f->pending = malloc(FOLD_PIECE * sizeof(*f->pending));
    }
    return f->pending == NULL || fold(f) != STEP_LOST;
}
