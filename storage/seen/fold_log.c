#include "storage/seen/fold_log.h"

#include <stdlib.h>

#include "storage/read/cache.h"
#include "storage/schema/key.h"

#define LOGS_MAX    8           /* a log of so many SEEN_LOG_BYTES is folded in any case */
#define BYTES_A_LOG (512 << 10) /* bytes of the newest layer that make a longer log worth while */

void fold_log_init(struct fold_log *f, struct core *core)
{
    *f = (struct fold_log){.month.core = core};
    buffer_init(&f->month.out);
    buffer_init(&f->bits);
}

void fold_log_release(struct fold_log *f)
{
    buffer_release(&f->month.out);
    buffer_release(&f->bits);
    free(f->pending);
    f->pending = NULL;
}

/* ---- bits ---- */

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

static void fold_log_exists(void *data, const void *string, size_t n)
{
    (void)data;
    (void)string;
    (void)n;
}

/* A string that questions have lately read is remembered as it is now, under the `ver` that the
 * end of the fold sets: so the next question need not read it again.  If the fold does not come to
 * that end, that `ver` never stands in Redis. */
static void fold_log_remember(struct fold_log *f, unsigned index, uint64_t segment)
{
    struct key key;
    const struct fold_month *m = &f->month;
    struct cache *cache = m->core->cache;
    if (cache == NULL) {
        return;
    }
    key_seen_bits(&key, m->tag, m->site, m->month, index, segment);
    struct cache_id id = cache_id(cache, key.p, key.n);
    if (cache_get(cache, &id, &f->begin, fold_log_exists, NULL) ||
        cache_get(cache, &id, &f->end, fold_log_exists, NULL)) {
        cache_put(cache, &id, &f->end, f->bits.p, f->bits.n);
    }
}

/* ---- folding ---- */

/* Of the pending fingerprints that belong to the segment, drop those that are in it.  With @add put
 * the others in, as long as there is room. */
static enum fold_step fold_segment(
    struct fold_log *f, const struct bloom_layer *layer, unsigned index, uint64_t segment, bool add)
{
    size_t left = 0;
    struct seen_filter *filter = &f->month.filter;
    uint64_t before = filter->items[index];
    enum fold_step step = fold_month_read_bits(&f->month, layer, index, segment, &f->bits);
    if (step != STEP_DONE) {
        return step;
    }
    for (size_t i = 0; i < f->n_pending; i++) {
        struct bloom_hash hash = seen_hash(f->pending[i]);
        bool here = bloom_segment(layer, hash) == segment;
        bool in = here && is_in(f, layer, hash);
        if (here && !in && add && filter->items[index] < layer->capacity) {
            put_in(f, layer, hash);
            filter->items[index]++;
            in = true;
        }
        if (!in) {
            f->pending[left++] = f->pending[i];
        }
    }
    f->n_pending = left;
    if (filter->items[index] > before) {
        step =
            fold_month_write_bits(&f->month, index, segment, (struct slice){f->bits.p, f->bits.n});
    }
    if (step == STEP_DONE) {
        fold_log_remember(f, index, segment);
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
    struct bloom_layer layer = bloom_layer(&f->month.filter.params, index);
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

/* Put all pending fingerprints into the filter.  One that is in an older layer needs no place in
 * the newest.  A layer is begun when the newest is full. */
static enum fold_step fold_piece(struct fold_log *f)
{
    enum fold_step step = STEP_DONE;
    struct seen_filter *filter = &f->month.filter;
    for (unsigned i = 0; step == STEP_DONE && i + 1 < filter->n; i++) {
        step = fold_layer(f, i, false);
    }
    filter->n = filter->n == 0 ? 1 : filter->n;
    while (step == STEP_DONE) {
        step = fold_layer(f, filter->n - 1, true);
        if (step != STEP_DONE || f->n_pending == 0) {
            break;
        }
        if (filter->n == BLOOM_LAYERS_MAX) {
            return STEP_YIELD; /* no more layers: the log stays, and questions read it */
        }
        filter->n++;
    }
    return step;
}

/* Fold all of the sealed log, then delete it. */
static enum fold_step fold_old(struct fold_log *f)
{
    size_t from = 0;
    enum fold_step step = fold_month_read_filter(&f->month);
    f->begin = f->month.filter.ver;
    f->end = fold_month_draw_ver();
    while (step == STEP_DONE) {
        step = fold_month_read_piece(&f->month, from, FOLD_PIECE, f->pending, &f->n_pending);
        size_t n = f->n_pending;
        if (step != STEP_DONE || n == 0) {
            break;
        }
        step = fold_piece(f);
        from += n * sizeof(*f->pending);
    }
    if (step == STEP_DONE && from == 0) {
        return STEP_DONE; /* another process has folded this log, and may have sealed a new one */
    }
    if (step == STEP_DONE) {
        step = fold_month_end(&f->month, &f->end);
    }
    if (step == STEP_DONE) {
        atomic_fetch_add(&f->month.core->stats.seen_folds, 1);
        atomic_fetch_add(&f->month.core->stats.seen_folded, (int64_t)(from / sizeof(*f->pending)));
    }
    return step;
}

/* How long a log must be to be worth a fold.  A larger filter needs a longer log, because each fold
 * writes the strings of its newest layer anew. */
static size_t worth_bytes(const struct fold_log *f)
{
    uint64_t logs = 1;
    const struct seen_filter *filter = &f->month.filter;
    if (filter->n > 0) {
        struct bloom_layer newest = bloom_layer(&filter->params, filter->n - 1);
        logs = 1 + newest.bits / 8 * newest.segments / BYTES_A_LOG;
    }
    return (logs > LOGS_MAX ? LOGS_MAX : logs) * SEEN_LOG_BYTES;
}

static enum fold_step fold_log_step(struct fold_log *f)
{
    size_t old = 0;
    size_t log = 0;
    enum fold_step step = fold_month_length(&f->month, "old", &old);
    if (step == STEP_DONE && old > 0) { /* another process died folding it, or is folding it */
        step = fold_old(f);
    }
    if (step == STEP_DONE) {
        step = fold_month_length(&f->month, "log", &log);
    }
    if (step == STEP_DONE) {
        step = fold_month_read_filter(&f->month);
    }
    if (step != STEP_DONE || log < worth_bytes(f)) {
        return step;
    }
    step = fold_month_seal(&f->month);
    return step == STEP_DONE ? fold_old(f) : step;
}

bool fold_log(struct fold_log *f, struct session *session, unsigned partition, struct slice site,
    struct bucket month, int64_t deadline_ms)
{
    fold_month_begin(&f->month, session, partition, site, month, deadline_ms);
    if (f->pending == NULL) {
        f->pending = malloc(FOLD_PIECE * sizeof(*f->pending));
    }
    return f->pending == NULL || fold_log_step(f) != STEP_LOST;
}
