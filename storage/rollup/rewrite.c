#include "storage/rollup/rewrite.h"

#include "storage/base/clock.h"
#include "storage/core/sessions.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/rollup/leadership.h"
#include "storage/schema/key.h"
#include "storage/time/units.h"

#define ASK_MS 2000

/* The days whose rewrite is due by @now_s. */
static int64_t due_day(int64_t now_s)
{
    return (now_s - REWRITE_HOUR * HOUR_S) / DAY_S;
}

/* NULL: the connection must be closed. */
static const struct reply *rewrite_ask(struct session *session, struct buffer *b)
{
    const struct reply *reply = NULL;
    enum redis_status status = redis_ask(session->redis, b, monotonic_ms() + ASK_MS, &reply);
    buffer_release(b);
    return status == REDIS_OK_STATUS ? reply : NULL;
}

static bool ask_for_day(struct session *session, const char *tag, int64_t day, int64_t *ret_day)
{
    struct buffer b;
    buffer_init(&b);
    resp_head(&b, day > 0 ? 3 : 2);
    resp_text(&b, day > 0 ? "SET" : "GET");
    key_put(&b, tag, "rewritten");
    if (day > 0) {
        resp_decimal(&b, day);
    }
    const struct reply *reply = rewrite_ask(session, &b);
    *ret_day = reply == NULL ? 0 : reply_integer(reply, 0);
    return reply != NULL;
}

/* *ret_begun: a rewrite is under way now. */
static bool begin_rewrite(struct session *session, bool *ret_begun)
{
    struct buffer b;
    buffer_init(&b);
    resp_head(&b, 1);
    resp_text(&b, "BGREWRITEAOF");
    const struct reply *reply = rewrite_ask(session, &b);
    *ret_begun = reply != NULL && reply->type != REPLY_ERROR;
    return reply != NULL;
}

static bool is_due(const struct aof_rewriter *rewriter, struct core *core)
{
    int64_t now_s = redis_clock_ms(&core->clock) / 1000;
    return core->config.aof_rewrite && atomic_load(&core->has_aof) && now_s != 0 &&
           (now_s >= rewriter->due_s || now_s <= rewriter->due_s - DAY_S);
}

bool aof_rewrite_look(
    struct aof_rewriter *rewriter, struct core *core, struct session *session, unsigned partition)
{
    int64_t now_s = redis_clock_ms(&core->clock) / 1000;
    int64_t day = due_day(now_s);
    int64_t last = 0;
    bool begun = true;
    const char *tag = core->partitions.tag[partition];
    if (!is_due(rewriter, core)) {
        return true;
    }
    if (!ask_for_day(session, tag, 0, &last)) {
        return false;
    }
    /* Of the day behind this one: this process's clock is some seconds late. */
    bool is_done = last == day || last == day + 1;
    if (!is_done && !begin_rewrite(session, &begun)) {
        return false;
    }
    if (!is_done && begun && !ask_for_day(session, tag, day, &last)) {
        return false;
    }
    rewriter->due_s = begun ? (day + 1) * DAY_S + REWRITE_HOUR * HOUR_S : now_s + REWRITE_AGAIN_S;
    return true;
}

void aof_rewrite_look_each(struct aof_rewriter *rewriter, struct core *core,
    struct sessions *servers, const struct leadership *leadership)
{
    struct part_set each;
    int64_t again_s = redis_clock_ms(&core->clock) / 1000 + REWRITE_AGAIN_S;
    struct aof_rewriter next = {.due_s = INT64_MAX};
    if (!is_due(rewriter, core)) {
        return;
    }
    bool all = servers_each(core, &each);
    for (unsigned p = 0; p < core->partitions.n && leadership->still_mine(leadership->data); p++) {
        struct aof_rewriter one = *rewriter;
        struct session *session =
            part_set_has(&each, p) ? sessions_get(servers, p, monotonic_ms() + ASK_MS) : NULL;
        if (session != NULL && !aof_rewrite_look(&one, core, session, p)) {
            session_lost(session);
            session = NULL;
        }
        all = all && (session != NULL || !part_set_has(&each, p));
        next.due_s = session != NULL && one.due_s < next.due_s ? one.due_s : next.due_s;
    }
    rewriter->due_s = all && leadership->still_mine(leadership->data) ? next.due_s : again_s;
}
