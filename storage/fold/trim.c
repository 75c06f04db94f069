#include "storage/fold/trim.h"

#include <string.h>

#include "storage/base/clock.h"
#include "storage/fold/streams.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

struct trimming {
    struct core *core;
    struct trim_log logs[LOG_PARTITIONS_MAX]; /* as they are now */
    unsigned places[LOG_PARTITIONS_MAX];
    size_t n;
};

/* Find the process's own logs, with what is known of them from before. */
static void find_logs(struct trimming *t, const struct trimmer *before, struct unfolded *unfolded)
{
    for (unsigned i = 0; i < unfolded->n_logs; i++) {
        struct trim_log *log = &t->logs[i];
        (void)unfolded_last(unfolded, i, log->id);
        if (log->id[0] == '\0') {
            continue;
        }
        log->counted = UINT64_MAX;
        log->cut = strcmp(before->logs[i].id, log->id) == 0 ? before->logs[i].cut : 0;
        t->places[t->n++] = i;
    }
}

static bool take_cursors(void *data, size_t i, const struct reply *reply)
{
    struct trimming *t = data;
    (void)i;
    if (reply->type != REPLY_ARRAY || reply->n != t->n) {
        return false;
    }
    for (size_t l = 0; l < t->n; l++) {
        if (!log_cursor_least(&reply->items[l], &t->logs[t->places[l]].counted)) {
            return false;
        }
    }
    return true;
}

static bool read_cursors(struct trimming *t, struct session *session, int64_t deadline_ms)
{
    struct asks asks = asks_to(session);
    for (unsigned p = 0; p < t->core->partitions.n; p++) {
        struct buffer *out = asks_command(&asks, t->core, p, "HMGET", "state", t->n);
        for (size_t l = 0; l < t->n; l++) {
            resp_text(out, t->logs[t->places[l]].id);
        }
    }
    return asks_run(&asks, deadline_ms, take_cursors, t) == REDIS_OK_STATUS;
}

static bool take_any(void *data, size_t i, const struct reply *reply)
{
    (void)data;
    (void)i;
    return reply->type != REPLY_ERROR;
}

/* Cut off what had been counted at the reading before. */
static void trim_cut(
    struct trimming *t, const struct trimmer *before, struct session *session, int64_t deadline_ms)
{
    struct asks asks = asks_to(session);
    for (size_t l = 0; l < t->n; l++) {
        unsigned place = t->places[l];
        struct trim_log *log = &t->logs[place];
        const struct trim_log *was = &before->logs[place];
        uint64_t to = was->counted < log->counted ? was->counted : log->counted;
        if (strcmp(was->id, log->id) != 0 || to <= log->cut) {
            continue;
        }
        unsigned partition = core_log_partition(t->core, place);
        stream_write_trim(t->core, partition, log->id, to, asks_begin(&asks, partition));
        log->cut = to;
    }
    if (asks.n > 0) {
        (void)!asks_run(&asks, deadline_ms, take_any, t); /* a later cut takes these along */
    }
}

void trim_streams(struct trimmer *trimmer, struct core *core, struct session *session,
    struct unfolded *unfolded, int64_t deadline_ms)
{
    int64_t now_ms = monotonic_ms();
    struct trimming t = {.core = core};
    if (trimmer->read_ms != 0 && now_ms - trimmer->read_ms < core_apart_ms(core)) {
        return;
    }
    find_logs(&t, trimmer, unfolded);
    if (t.n > 0 && read_cursors(&t, session, deadline_ms)) {
        /* No server has gone back if the connections stand since the reading before. */
        if (trimmer->read_ms != 0 && session_stands_since(session) == trimmer->stood_us) {
            trim_cut(&t, trimmer, session, deadline_ms);
        }
        memcpy(trimmer->logs, t.logs, sizeof(t.logs));
        trimmer->read_ms = now_ms;
        trimmer->stood_us = session_stands_since(session);
    }
}
