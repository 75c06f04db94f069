#include "storage/seen/fold_month.h"

#include <stdio.h>
#include <string.h>

#include "storage/base/random_id.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/reply_fault.h"

void fold_month_begin(struct fold_month *m, struct session *session, unsigned partition,
    struct slice site, struct bucket month, int64_t deadline_ms)
{
    m->session = session;
    m->partition = partition;
    m->tag = m->core->partitions.tag[partition];
    m->site = site;
    m->month = month;
    m->deadline_ms = deadline_ms;
}

/* ---- asking ---- */

/* Send m->out, and await one reply, which is valid until the next step. */
static enum fold_step fold_month_ask(struct fold_month *m, const struct reply **ret)
{
    if (redis_ask(m->session->redis, &m->out, m->deadline_ms, ret) != REDIS_OK_STATUS) {
        return STEP_LOST;
    }
    if ((*ret)->type != REPLY_ERROR) {
        return STEP_DONE;
    }
    server_refused(m->core, &m->session->server, m->partition, *ret);
    if (m->core->is_spread && (reply_is_error(*ret, "MOVED") || reply_is_error(*ret, "ASK") ||
                                  reply_is_error(*ret, "TRYAGAIN"))) {
        return STEP_YIELD; /* the log waits for another time, when the slot has moved */
    }
    if (!reply_is_error(*ret, "ERR no such key")) { /* RENAMENX: another process has sealed it */
        core_notice(m->core, STORAGE_SEEN_FAILED, (*ret)->text.p);
    }
    return reply_fault(*ret) == REPLY_RECONNECT ? STEP_LOST : STEP_YIELD;
}

static void put_key(struct fold_month *m, const char *what)
{
    struct key key;
    resp_slice(&m->out, key_seen(&key, m->tag, m->site, m->month, what));
}

/* Begin a command about a key of the month; @n words must follow. */
static void month_command(struct fold_month *m, const char *command, const char *what, size_t n)
{
    struct key key;
    resp_begin(&m->out, command, key_seen(&key, m->tag, m->site, m->month, what), n);
}

/* ---- the log ---- */

enum fold_step fold_month_length(struct fold_month *m, const char *which, size_t *ret)
{
    const struct reply *reply = NULL;
    month_command(m, "STRLEN", which, 0);
    enum fold_step step = fold_month_ask(m, &reply);
    *ret = step == STEP_DONE ? (size_t)reply_integer(reply, 0) : 0;
    return step;
}

enum fold_step fold_month_seal(struct fold_month *m)
{
    const struct reply *reply = NULL;
    month_command(m, "RENAMENX", "log", 1);
    put_key(m, "old");
    return fold_month_ask(m, &reply);
}

enum fold_step fold_month_read_piece(
    struct fold_month *m, size_t from, size_t most, uint64_t *fingerprints, size_t *ret_n)
{
    const struct reply *reply = NULL;
    month_command(m, "GETRANGE", "old", 2);
    resp_decimal(&m->out, (int64_t)from);
    resp_decimal(&m->out, (int64_t)(from + most * sizeof(*fingerprints) - 1));
    enum fold_step step = fold_month_ask(m, &reply);
    *ret_n = 0;
    if (step == STEP_DONE && reply->text.n > 0) {
        *ret_n = reply->text.n / sizeof(*fingerprints);
        memcpy(fingerprints, reply->text.p, *ret_n * sizeof(*fingerprints));
    }
    return step;
}

/* ---- the filter ---- */

enum fold_step fold_month_read_filter(struct fold_month *m)
{
    const struct reply *reply = NULL;
    struct bloom_params params =
        seen_params(&m->core->config.seen, visitor_partitions(m->core->partitions.n));
    month_command(m, "HGETALL", "filter", 0);
    enum fold_step step = fold_month_ask(m, &reply);
    if (step == STEP_DONE && !seen_filter_read(reply, &params, &m->filter)) {
        return STEP_YIELD;
    }
    return step;
}

enum fold_step fold_month_read_bits(struct fold_month *m, const struct bloom_layer *layer,
    unsigned index, uint64_t segment, struct buffer *ret)
{
    struct key key;
    const struct reply *reply = NULL;
    size_t n = layer->bits / 8;
    resp_begin(&m->out, "GET", key_seen_bits(&key, m->tag, m->site, m->month, index, segment), 0);
    enum fold_step step = fold_month_ask(m, &reply);
    if (step != STEP_DONE) {
        return step;
    }
    buffer_clear(ret, SEEN_SEGMENT_BITS / 8 * 2);
    char *p = buffer_grow(ret, n);
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

struct ver fold_month_draw_ver(void)
{
    struct ver ver = {.n = SEEN_VER_TEXT};
    char text[SEEN_VER_TEXT + 1];
    random_id(text, sizeof(text));
    memcpy(ver.text, text, SEEN_VER_TEXT);
    return ver;
}

/* seen_fold.lua: put @bits into @key, or, without a key, delete the log that was folded.  Either
 * way the filter gets @ver, its number of layers and the items of layer @index. */
static enum fold_step write_step(struct fold_month *m, const struct ver *ver, const struct key *key,
    unsigned index, struct slice bits)
{
    char number[32];
    const struct reply *reply = NULL;
    struct seen_filter *filter = &m->filter;
    script_head(&m->out, &m->session->scripts, SCRIPT_SEEN_FOLD, key == NULL ? 2 : 3, 4 + 10);
    put_key(m, "filter");
    put_key(m, "old");
    if (key != NULL) {
        resp_word(&m->out, key->p, key->n);
    }
    resp_word(&m->out, filter->ver.text, filter->ver.n);
    resp_word(&m->out, ver->text, ver->n);
    resp_decimal(&m->out, seen_expire_ms(m->month, m->core->config.seen.keep_s));
    resp_slice(&m->out, bits);
    resp_text(&m->out, "capacity");
    resp_decimal(&m->out, (int64_t)filter->params.capacity);
    resp_text(&m->out, "error");
    resp_word(
        &m->out, number, (size_t)snprintf(number, sizeof(number), "%.17g", filter->params.error));
    resp_text(&m->out, "rules");
    resp_decimal(&m->out, filter->rules);
    resp_text(&m->out, "n");
    resp_decimal(&m->out, filter->n);
    resp_decimal(&m->out, index);
    resp_decimal(&m->out, (int64_t)filter->items[index]);
    enum fold_step step = fold_month_ask(m, &reply);
    if (step != STEP_DONE) {
        return step;
    }
    filter->ver = *ver;
    return reply_integer(reply, 0) == 1 ? STEP_DONE : STEP_YIELD;
}

enum fold_step fold_month_write_bits(
    struct fold_month *m, unsigned index, uint64_t segment, struct slice bits)
{
    struct key key;
    struct ver ver = fold_month_draw_ver();
    key_seen_bits(&key, m->tag, m->site, m->month, index, segment);
    return write_step(m, &ver, &key, index, bits);
}

enum fold_step fold_month_end(struct fold_month *m, const struct ver *ver)
{
    return write_step(m, ver, NULL, m->filter.n - 1, SLICE(""));
}
