#include "storage/rollup/status.h"

#include <stdio.h>

#include "storage/lock/leader.h"
#include "storage/lock/lock.h"
#include "storage/redis/resp.h"

static void put_get(struct buffer *b, const struct core *core, const char *name)
{
    struct key key;
    key_fixed(&key, core->partitions.tag[0], name, SLICE(""));
    resp_head(b, 2);
    resp_text(b, "GET");
    resp_word(b, key.p, key.n);
}

static enum storage_err take_partition(
    struct core *core, unsigned partition, const struct reply *reply, struct rollup_job *ret)
{
    struct partition_view view;
    if (!core_parse_rolled(core, reply, &view)) {
        return reply->type == REPLY_ERROR ? STORAGE_REFUSED : STORAGE_CONFIG;
    }
    core_set_view(core, partition, &view);
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        int64_t mark_s = view.state.readers_s[level];
        if (partition == 0 || mark_s < ret->watermark_s[level]) {
            ret->watermark_s[level] = mark_s;
        }
    }
    return STORAGE_OK;
}

/* The @i-th reply: time, lock, fence, then the partitions. */
static enum storage_err take(
    struct core *core, size_t i, const struct reply *reply, struct rollup_job *ret)
{
    if (reply->type == REPLY_ERROR) {
        return STORAGE_REFUSED;
    }
    if (i == 0) {
        core_time_seen(core, reply_time_us(reply));
        return STORAGE_OK;
    }
    if (i == 1) {
        struct slice holder = reply->type == REPLY_TEXT ? lock_holder(reply->text) : SLICE("");
        (void)snprintf(ret->holder, sizeof(ret->holder), "%.*s", (int)holder.n, holder.p);
        return STORAGE_OK;
    }
    if (i == 2) {
        ret->fencing_token = reply_integer(reply, 0);
        return STORAGE_OK;
    }
    return take_partition(core, (unsigned)(i - 3), reply, ret);
}

enum storage_err rollup_status_read(struct core *core, struct session *session, int64_t deadline_ms,
    struct rollup_job *ret, bool *ret_lost)
{
    enum storage_err err = STORAGE_OK;
    struct leader *leader = atomic_load(&core->leader);
    size_t n = 3 + core->partitions.n;
    struct buffer b;
    buffer_init(&b);
    resp_command(&b, "TIME", NULL);
    put_get(&b, core, "lock");
    put_get(&b, core, "fence");
    for (unsigned p = 0; p < core->partitions.n; p++) {
        rolled_ask(&b, core->partitions.tag[p], 0);
    }
    *ret = (struct rollup_job){0};
    bool ok = redis_queue(session->redis, &b);
    buffer_release(&b);
    for (size_t i = 0; ok && i < n; i++) {
        const struct reply *reply = NULL;
        ok = redis_await(session->redis, deadline_ms, &reply) == REDIS_OK_STATUS;
        enum storage_err fault = ok ? take(core, i, reply, ret) : STORAGE_OK;
        err = err == STORAGE_OK ? fault : err;
    }
    if (!ok) {
        *ret_lost = true;
        return STORAGE_DOWN;
    }
    int64_t now_s = redis_clock_ms(&core->clock) / 1000;
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        int64_t lag_s =
            site_zones_start(&core->sites, (enum level)level, now_s) - ret->watermark_s[level];
        ret->lag_s[level] = lag_s < 0 ? 0 : lag_s;
    }
    ret->leader = leader != NULL && leader_token(leader) != 0;
    return err;
}
