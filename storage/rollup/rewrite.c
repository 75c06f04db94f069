#include "storage/rollup/rewrite.h"

#include "storage/base/clock.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/rollup/leadership.h"
#include "storage/schema/key.h"
#include "storage/session/sessions.h"
#include "storage/time/units.h"

#define ASK_MS 2000 /* the longest wait for an answer */

/* The number of the last day, since 1970, whose rewrite is due by @now_s. */
static int64_t due_day(int64_t now_s)
{
    return (now_s - REWRITE_HOUR * HOUR_S) / DAY_S;
}

/* Send the command in @b, which is released.  NULL: the connection must be closed. */
static const struct reply *rewrite_ask(struct session *session, struct buffer *b)
{
    const struct reply *reply = NULL;
    enum redis_status status = redis_ask(session->redis, b, monotonic_ms() + ASK_MS, &reply);
    buffer_release(b);
    return status == REDIS_OK_STATUS ? reply : NULL;
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
    bool begun = true; /* a rewrite is under way now, or was this day */
    const char *tag = core->partitions.tag[partition];
    struct buffer b;
    if (!is_due(rewriter, core)) {
        return true;
    }
    buffer_init(&b);
    key_command(&b, "GET", tag, "rewritten", 0);
    const struct reply *reply = rewrite_ask(session, &b);
    /* Day + 1: another process has begun it, and this process's view of the clock is a bit late. */
    int64_t last = reply == NULL ? 0 : reply_integer(reply, 0);
    if (reply != NULL && last != day && last != day + 1) {
        resp_command(&b, "BGREWRITEAOF", NULL);
        reply = rewrite_ask(session, &b);
        begun = reply != NULL && reply->type != REPLY_ERROR;
        if (begun) {
            key_command(&b, "SET", tag, "rewritten", 1);
            resp_decimal(&b, day);
            reply = rewrite_ask(session, &b);
        }
    }
    if (reply == NULL) {
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
