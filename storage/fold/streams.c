#include "storage/fold/streams.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/asks.h"

/* One command is to read about so many bytes: that bounds memory, and how long Redis is held. */
#define PIECE_BYTES ((size_t)1024 * 1024)
#define COUNT_FIRST 64   /* entries of the first command */
#define COUNT_MAX   4096 /* entries of a command, at most */

void streams_forget(struct streams *streams)
{
    streams->n = 0;
    streams->count = 0;
}

void streams_release(struct streams *streams)
{
    free(streams->streams);
    *streams = (struct streams){0};
}

struct stream *streams_find(struct streams *streams, const char *id)
{
    for (size_t i = 0; i < streams->n; i++) {
        if (strcmp(streams->streams[i].id, id) == 0) {
            return &streams->streams[i];
        }
    }
    if (!array_reserve(
            &streams->streams, &streams->capacity, streams->n, sizeof(*streams->streams))) {
        return NULL;
    }
    struct stream *stream = &streams->streams[streams->n++];
    *stream = (struct stream){0};
    memcpy(stream->id, id, sizeof(stream->id));
    return stream;
}

/* ---- heads ---- */

struct look {
    struct heads *heads;
    struct core *core;
};

static bool take_heads(void *data, size_t i, const struct reply *reply)
{
    struct look *look = data;
    unsigned n = core_logs(look->core);
    if (i < n) {
        return heads_add(look->heads, (unsigned)i, reply) == STORAGE_OK;
    }
    if (i == n) {
        core_time_seen(look->core, reply_time_us(reply));
        return reply->type == REPLY_ARRAY;
    }
    return reply->type != REPLY_ERROR;
}

static void forget_closed(struct streams *streams, const struct heads *heads)
{
    size_t n = 0;
    for (size_t i = 0; i < streams->n; i++) {
        if (heads_find(heads, streams->streams[i].id, i) != NULL) {
            streams->streams[n++] = streams->streams[i];
        }
    }
    streams->n = n;
}

enum redis_status streams_look(struct streams *streams, struct core *core, struct session *session,
    int64_t deadline_ms, struct heads *ret)
{
    struct look look = {ret, core};
    struct part_set each;
    if (!servers_each(core, &each)) {
        return REDIS_LOST;
    }
    struct asks asks = asks_to(session);
    heads_clear(ret);
    ret->asked_ms = monotonic_ms();
    for (unsigned i = 0; i < core_logs(core); i++) {
        (void)asks_command(&asks, core, core_log_partition(core, i), "HGETALL", "heads", 0);
    }
    resp_command(asks_begin(&asks, 0), "TIME", NULL);
    for (unsigned p = 0; core->is_spread && p < core->partitions.n; p++) {
        if (part_set_has(&each, p)) {
            (void)asks_command(&asks, core, p, "EXISTS", "state", 0);
        }
    }
    enum redis_status status = asks_run(&asks, deadline_ms, take_heads, &look);
    if (status == REDIS_OK_STATUS) {
        forget_closed(streams, ret);
    }
    return status;
}

/* ---- cursors ---- */

static bool take_cursor(void *data, size_t i, const struct reply *reply)
{
    (void)i;
    return log_cursor_least(reply, data);
}

enum redis_status streams_learn(
    struct core *core, struct session *session, int64_t deadline_ms, struct stream *stream)
{
    uint64_t least = UINT64_MAX;
    struct asks asks = asks_to(session);
    for (unsigned p = 0; p < core->partitions.n; p++) {
        resp_text(asks_command(&asks, core, p, "HGET", "state", 1), stream->id);
    }
    enum redis_status status = asks_run(&asks, deadline_ms, take_cursor, &least);
    if (status == REDIS_OK_STATUS) {
        stream->folded = least;
        stream->is_known = true;
    }
    return status;
}

/* ---- entries ---- */

static size_t item_bytes(const struct reply *item)
{
    size_t n = 0;
    const struct reply *fields = item->n == 2 ? &item->items[1] : item;
    for (size_t i = 0; i < fields->n; i++) {
        n += fields->items[i].text.n;
    }
    return n;
}

/* The next command reads half as many entries if these were long, twice as many if short. */
static void learn_count(struct streams *streams, size_t bytes, bool full)
{
    if (bytes > PIECE_BYTES && streams->count > 1) {
        streams->count /= 2;
    } else if (full && bytes < PIECE_BYTES / 4 && streams->count < COUNT_MAX) {
        streams->count *= 2;
    }
}

/* Put the items into the batch.  False: out of memory. */
static bool take_items(
    struct batch *batch, struct batch_log *log, const char *id, const struct reply *reply)
{
    for (size_t i = 0; i < reply->n; i++) {
        bool foreign;
        struct log_entry *entry = entry_parse(id, &reply->items[i], &foreign);
        if (entry == NULL && foreign) {
            log->broken = true;
            return true;
        }
        if (entry == NULL || !batch_add(batch, entry)) {
            return false;
        }
    }
    return true;
}

static void write_range(const struct core *core, unsigned partition, const struct stream *stream,
    uint64_t to, unsigned count, struct buffer *out)
{
    struct key key;
    resp_head(out, 6);
    resp_text(out, "XRANGE");
    resp_slice(out, key_fixed(&key, core->partitions.tag[partition], "log:", slice_of(stream->id)));
    resp_decimal(out, (int64_t)stream->folded + 1);
    resp_decimal(out, (int64_t)to);
    resp_text(out, "COUNT");
    resp_decimal(out, count);
}

/* One piece as it is read. */
struct piece {
    struct stream *stream;
    struct batch *batch;
    struct batch_log *log;
    size_t n, bytes;
};

static bool take_piece(void *data, size_t i, const struct reply *reply)
{
    struct piece *piece = data;
    (void)i;
    if (reply->type != REPLY_ARRAY ||
        !take_items(piece->batch, piece->log, piece->stream->id, reply)) {
        return false;
    }
    piece->n = reply->n;
    for (size_t item = 0; item < reply->n; item++) {
        piece->bytes += item_bytes(&reply->items[item]);
    }
    return true;
}

enum redis_status streams_read(struct streams *streams, struct core *core, struct session *session,
    int64_t deadline_ms, struct stream *stream, unsigned place, uint64_t to, struct batch *batch)
{
    struct batch_log *log = batch_add_log(batch, stream->id, stream->folded);
    struct piece piece = {stream, batch, log, 0, 0};
    unsigned partition = core_log_partition(core, place);
    if (log == NULL) {
        return REDIS_OK_STATUS; /* the log goes into the next batch */
    }
    streams->count = streams->count == 0 ? COUNT_FIRST : streams->count;
    struct asks asks = asks_to(session);
    write_range(core, partition, stream, to, streams->count, asks_begin(&asks, partition));
    enum redis_status status = asks_run(&asks, deadline_ms, take_piece, &piece);
    if (status != REDIS_OK_STATUS) {
        return status;
    }
    log->more = piece.n == streams->count || log->broken;
    log->to = log->more ? log->to : to; /* entries that are not there never were, or are lost */
    learn_count(streams, piece.bytes, piece.n == streams->count);
    return REDIS_OK_STATUS;
}

/* ---- cutting ---- */

void stream_write_trim(
    const struct core *core, unsigned partition, const char *id, uint64_t to, struct buffer *out)
{
    struct key key;
    resp_head(out, 4);
    resp_text(out, "XTRIM");
    resp_slice(out, key_fixed(&key, core->partitions.tag[partition], "log:", slice_of(id)));
    resp_text(out, "MINID");
    resp_decimal(out, (int64_t)to + 1);
}

enum redis_status stream_trim(
    struct core *core, struct session *session, int64_t deadline_ms, const char *id, uint64_t to)
{
    struct buffer out;
    const struct reply *reply;
    buffer_init(&out);
    stream_write_trim(core, 0, id, to, &out);
    enum redis_status status = redis_ask(session->redis, &out, deadline_ms, &reply);
    buffer_release(&out);
    return status;
}
