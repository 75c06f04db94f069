#include "storage/rollup/leadership.h"

#include "storage/base/clock.h"
#include "storage/redis/ask.h"
#include "storage/session/reply_fault.h"

#define STEP_MS 5000 /* longest wait for one step's reply */

/* Does the server only say that another server has the slot?  That passes, so nobody is told. */
static bool is_redirected(const struct reply *reply)
{
    return reply_is_error(reply, "MOVED") || reply_is_error(reply, "ASK") ||
           reply_is_error(reply, "TRYAGAIN") || reply_is_error(reply, "CLUSTERDOWN");
}

enum pass_result leadership_ask(const struct leadership *leadership, struct core *core,
    struct session *session, unsigned partition, struct buffer *out, const struct reply **ret)
{
    if (!leadership->still_mine(leadership->data)) {
        buffer_clear(out, 0);
        return PASS_VOID;
    }
    if (redis_ask(session->redis, out, monotonic_ms() + STEP_MS, ret) != REDIS_OK_STATUS) {
        return PASS_LOST;
    }
    if ((*ret)->type != REPLY_ERROR) {
        return PASS_DONE;
    }
    server_refused(core, &session->server, partition, *ret);
    if (core->is_spread && is_redirected(*ret)) {
        return PASS_FAILED;
    }
    core_notice(core, STORAGE_ROLLUP_FAILED, (*ret)->text.p);
    return reply_fault(*ret) == REPLY_RECONNECT ? PASS_LOST : PASS_FAILED;
}
