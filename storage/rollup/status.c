#include "storage/rollup/status.h"

#include <stdio.h>

#include "storage/lock/leader.h"
#include "storage/lock/lock.h"
#include "storage/read/operation.h"
#include "storage/redis/resp.h"
#include "storage/session/asks.h"
#include "storage/session/reply_fault.h"

/* The replies, in the order of the commands; behind these comes one for each partition. */
enum { REPLY_OF_TIME, REPLY_OF_LOCK, REPLY_OF_FENCE, REPLIES_BEFORE_PARTITIONS };

static enum storage_err take_partition(
    struct core *core, unsigned partition, const struct reply *reply, struct rollup_job *ret)
{
    struct partition_view view;
    enum storage_err err = core_learn_state(core, partition, reply, &view);
    for (int level = LEVEL_HOUR; err == STORAGE_OK && level < LEVELS; level++) {
        int64_t mark_s = view.state.readers_s[level];
        if (partition == 0 || mark_s < ret->watermark_s[level]) {
            ret->watermark_s[level] = mark_s;
        }
    }
    return err;
}

struct reading {
    struct core *core;
    struct rollup_job *ret;
    enum storage_err err; /* the first fault */
    bool lost;
};

static enum storage_err rollup_status_take(struct reading *r, size_t i, const struct reply *reply)
{
    struct rollup_job *ret = r->ret;
    if (reply->type == REPLY_ERROR) {
        return reply_err(reply, &r->lost);
    }
    if (i == REPLY_OF_TIME) {
        core_time_seen(r->core, reply_time_us(reply));
        return STORAGE_OK;
    }
    if (i == REPLY_OF_LOCK) {
        struct slice holder = reply->type == REPLY_TEXT ? lock_holder(reply->text) : SLICE("");
        (void)snprintf(ret->holder, sizeof(ret->holder), "%.*s", (int)holder.n, holder.p);
        return STORAGE_OK;
    }
    if (i == REPLY_OF_FENCE) {
        ret->fencing_token = reply_integer(reply, 0);
        return STORAGE_OK;
    }
    return take_partition(r->core, (unsigned)(i - REPLIES_BEFORE_PARTITIONS), reply, ret);
}

/* Take a reply.  True also after a fault: all replies are taken, so none is left on the
 * connection. */
static bool take_reply(void *data, size_t i, const struct reply *reply)
{
    struct reading *r = data;
    enum storage_err err = rollup_status_take(r, i, reply);
    r->err = r->err == STORAGE_OK ? err : r->err;
    return true;
}

enum storage_err rollup_status_read(struct core *core, struct session *session, int64_t deadline_ms,
    struct rollup_job *ret, bool *ret_lost)
{
    struct reading r = {.core = core, .ret = ret, .err = STORAGE_OK};
    struct leader *leader = atomic_load(&core->leader);
    struct asks asks = asks_to(session);
    resp_command(asks_begin(&asks, 0), "TIME", NULL);
    (void)asks_command(&asks, core, 0, "GET", "lock", 0);
    (void)asks_command(&asks, core, 0, "GET", "fence", 0);
    for (unsigned p = 0; p < core->partitions.n; p++) {
        partition_state_ask(asks_begin(&asks, p), core->partitions.tag[p], 0);
    }
    *ret = (struct rollup_job){0};
    enum redis_status status = asks_run(&asks, deadline_ms, take_reply, &r);
    if (status != REDIS_OK_STATUS) {
        *ret_lost = true;
        return STORAGE_DOWN;
    }
    *ret_lost = *ret_lost || r.lost;
    int64_t now_s = redis_clock_ms(&core->clock) / 1000;
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        int64_t lag_s =
            site_zones_start(&core->sites, (enum level)level, now_s) - ret->watermark_s[level];
        ret->lag_s[level] = lag_s < 0 ? 0 : lag_s;
    }
    ret->leader = leader != NULL && leader_token(leader) != 0;
    return r.err;
}

enum storage_err rollup_status_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    enum storage_err err = rollup_status_read(
        reader->core, &reader->session, job->deadline_ms, &job->u.rollup, ret_lost);
    if (err == STORAGE_STATE_LOST) {
        (void)core_lost_text(reader->core, job->detail);
    }
    return err;
}
