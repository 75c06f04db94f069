#include "storage/rollup/leadership.h"

#include "storage/base/clock.h"
#include "storage/core/reply_fault.h"
#include "storage/redis/ask.h"

#define STEP_MS 5000 /* longest wait for one step's reply */

enum pass_result leadership_ask(const struct leadership *leadership, struct core *core,
    struct session *session, struct buffer *out, const struct reply **ret)
{
    if (!leadership->still_mine(leadership->data)) {
        buffer_clear(out, 0);
        return PASS_VOID;
    }
    if (redis_ask(session->redis, out, monotonic_ms() + STEP_MS, ret) != REDIS_OK_STATUS) {
        return PASS_LOST;
    }
    if ((*ret)->type == REPLY_ERROR) {
        core_notice(core, STORAGE_ROLLUP_FAILED, (*ret)->text.p);
        return reply_fault(*ret) == REPLY_RECONNECT ? PASS_LOST : PASS_FAILED;
    }
    return PASS_DONE;
}
