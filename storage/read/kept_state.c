#include "storage/read/kept_state.h"

#include "storage/redis/resp.h"
#include "storage/schema/key.h"

_Static_assert(PIPELINE_DETAIL >= LOST_STATE_TEXT, "the sentence fits");

void kept_state_ask(struct core *core, struct pipeline *p, unsigned partition)
{
    if (core->is_spread) {
        struct buffer *out = pipeline_command(p, partition, "HMGET", 2);
        key_put(out, core->partitions.tag[partition], "state");
        resp_text(out, "cfg");
    }
}

bool kept_state_take(struct core *core, struct pipeline *p, unsigned partition)
{
    if (!core->is_spread) {
        return true;
    }
    const struct reply *fields = pipeline_take(p);
    if (fields == NULL) {
        return false;
    }
    if (fields->type != REPLY_ARRAY || fields->n != 1) {
        return pipeline_foreign(p, "a partition's state");
    }
    if (!core_state_lost(core, partition, fields)) {
        return true;
    }
    (void)core_lost_text(core, p->detail);
    return pipeline_fail(p, STORAGE_STATE_LOST);
}
