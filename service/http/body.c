#include "service/http/body.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "handlers/text/plain.h"

struct body_inflate {
    z_stream z;
    bool between; /* no member of the gzip stream is open */
    bool any;     /* one member was complete */
};

const char *body_err_text(enum body_err err)
{
    switch (err) {
    case BODY_OK:
        return "ok";
    case BODY_TOO_LARGE:
        return "the body is too large";
    case BODY_NO_BUDGET:
        return "the requests in flight hold all the memory for bodies";
    case BODY_NO_MEMORY:
        return "out of memory";
    case BODY_CODING:
        return "Content-Encoding must be gzip or identity";
    case BODY_BAD_GZIP:
        return "the body is not a sound gzip stream";
    case BODY_TRUNCATED:
        return "the gzip stream is cut off";
    }
    return "";
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool budget_take(struct body_budget *budget, size_t n)
{
    size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    do {
        if (n > budget->max || used > budget->max - n) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &budget->used, &used, used + n, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void budget_give(struct body_budget *budget, size_t n)
{
    (void)atomic_fetch_sub_explicit(&budget->used, n, memory_order_relaxed);
}

void body_init(
    struct body *body, struct body_budget *budget, size_t limit, char *first, size_t first_n)
{
    assert(first_n > 0);
    *body = (struct body){
        .bytes = first, .capacity = least(first_n, limit), .limit = limit, .budget = budget};
}

static enum body_err fail(struct body *body, enum body_err err)
{
    body->err = err;
    return err;
}

enum body_err body_claim(struct body *body, uint64_t n)
{
    if (body->err != BODY_OK || body->inflate != NULL) {
        return body->err;
    }
    if (n > body->limit) {
        return fail(body, BODY_TOO_LARGE);
    }
    size_t used = atomic_load_explicit(&body->budget->used, memory_order_relaxed);
    if (n > body->capacity && (n > body->budget->max || used > body->budget->max - n)) {
        return fail(body, BODY_NO_BUDGET);
    }
    body->claimed = (size_t)n;
    return BODY_OK;
}

static enum body_err begin_inflate(struct body *body)
{
    if (!budget_take(body->budget, BODY_INFLATE_MEM)) {
        return fail(body, BODY_NO_BUDGET);
    }
    body->reserved += BODY_INFLATE_MEM;
    struct body_inflate *inflate_state = calloc(1, sizeof(*inflate_state));
    if (inflate_state == NULL) {
        return fail(body, BODY_NO_MEMORY);
    }
    if (inflateInit2(&inflate_state->z, 16 + MAX_WBITS) != Z_OK) { /* 16: gzip only */
        free(inflate_state);
        return fail(body, BODY_NO_MEMORY);
    }
    inflate_state->between = true;
    body->inflate = inflate_state;
    return BODY_OK;
}

enum body_err body_coding(struct body *body, struct slice value)
{
    value = slice_trim(value, " \t");
    if (body->err != BODY_OK || value.n == 0 || text_equal_nocase(value, SLICE("identity"))) {
        return body->err;
    }
    if (!text_equal_nocase(value, SLICE("gzip")) && !text_equal_nocase(value, SLICE("x-gzip"))) {
        return fail(body, BODY_CODING);
    }
    return begin_inflate(body);
}

/* Make room for @need bytes in all, need <= limit.  Doubling keeps the copying linear. */
static enum body_err grow(struct body *body, size_t need)
{
    size_t capacity = body->capacity > body->limit / 2 ? body->limit : body->capacity * 2;
    if (body->claimed >= need) { /* no more than was announced, but at once up to BODY_CLAIM_MAX */
        capacity = least(body->claimed, most(capacity, BODY_CLAIM_MAX));
    }
    capacity = most(capacity, need);
    size_t before = body->on_heap ? body->capacity : 0;
    if (!budget_take(body->budget, capacity - before)) {
        return fail(body, BODY_NO_BUDGET);
    }
    char *bytes = realloc(body->on_heap ? body->bytes : NULL, capacity);
    if (bytes == NULL) {
        budget_give(body->budget, capacity - before);
        return fail(body, BODY_NO_MEMORY);
    }
    if (!body->on_heap) {
        memcpy(bytes, body->bytes, body->n);
    }
    body->reserved += capacity - before;
    body->bytes = bytes;
    body->capacity = capacity;
    body->on_heap = true;
    return BODY_OK;
}

static enum body_err append_plain(struct body *body, const char *p, size_t n)
{
    if (n > body->limit - body->n) {
        return fail(body, BODY_TOO_LARGE);
    }
    if (n > body->capacity - body->n && grow(body, body->n + n) != BODY_OK) {
        return body->err;
    }
    memcpy(body->bytes + body->n, p, n);
    body->n += n;
    return BODY_OK;
}

/* Inflate into the room that is left.  A full body gets one byte aside, which only shows whether
 * more comes. */
static int inflate_some(struct body *body)
{
    z_stream *z = &body->inflate->z;
    Bytef beyond = 0;
    bool full = body->n == body->limit;
    size_t room = full ? 1 : least(body->capacity - body->n, UINT_MAX);
    z->next_out = full ? &beyond : (Bytef *)body->bytes + body->n;
    z->avail_out = (uInt)room;
    int result = inflate(z, Z_NO_FLUSH);
    size_t produced = room - z->avail_out;
    if (full && produced > 0) {
        (void)fail(body, BODY_TOO_LARGE);
    } else {
        body->n += produced;
    }
    return result;
}

/* One step of append_gzip().  False: no input is left, or an error occurred. */
static bool inflate_step(struct body *body)
{
    struct body_inflate *state = body->inflate;
    if (state->between) {
        if (state->z.avail_in == 0) {
            return false;
        }
        /* RFC 1952 section 2.2: a file is a series of members.  Anything else is refused. */
        if (state->any && inflateReset(&state->z) != Z_OK) {
            return fail(body, BODY_BAD_GZIP) == BODY_OK;
        }
        state->between = false;
    }
    if (body->n == body->capacity && body->n < body->limit && grow(body, body->n + 1) != BODY_OK) {
        return false;
    }
    int result = inflate_some(body);
    if (body->err != BODY_OK) {
        return false;
    }
    if (result == Z_STREAM_END) {
        state->between = state->any = true;
    } else if (result == Z_BUF_ERROR) { /* no progress without more input */
        return false;
    } else if (result != Z_OK) {
        return fail(body, result == Z_MEM_ERROR ? BODY_NO_MEMORY : BODY_BAD_GZIP) == BODY_OK;
    }
    return true;
}

static enum body_err append_gzip(struct body *body, const char *p, size_t n)
{
    z_stream *z = &body->inflate->z;
    while (n > 0) {
        size_t piece = least(n, UINT_MAX);
        z->next_in = (z_const Bytef *)(uintptr_t)p; /* zlib does not write to it */
        z->avail_in = (uInt)piece;
        while (inflate_step(body)) {
            ;
        }
        if (body->err != BODY_OK) {
            return body->err;
        }
        assert(z->avail_in == 0);
        p += piece;
        n -= piece;
    }
    return BODY_OK;
}

/* Free all memory; the error stays. */
static void drop(struct body *body)
{
    if (body->inflate != NULL) {
        (void)inflateEnd(&body->inflate->z);
        free(body->inflate);
        body->inflate = NULL;
    }
    if (body->on_heap) {
        free(body->bytes);
    }
    if (body->reserved > 0) {
        budget_give(body->budget, body->reserved);
    }
    body->bytes = NULL;
    body->n = body->capacity = body->reserved = 0;
    body->on_heap = false;
}

enum body_err body_append(struct body *body, const char *p, size_t n)
{
    if (body->err != BODY_OK || n == 0) {
        return body->err;
    }
    enum body_err err = body->inflate != NULL ? append_gzip(body, p, n) : append_plain(body, p, n);
    if (err != BODY_OK) {
        drop(body); /* other requests may have the memory while the rest is swallowed */
    }
    return err;
}

enum body_err body_end(struct body *body)
{
    if (body->err != BODY_OK || body->inflate == NULL) {
        return body->err;
    }
    if (body->inflate->between && body->inflate->any) {
        return BODY_OK;
    }
    return fail(body, BODY_TRUNCATED);
}

void body_release(struct body *body)
{
    drop(body);
}
