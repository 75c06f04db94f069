#include "storage/deletion/list.h"

#include "storage/base/clock.h"
#include "storage/redis/resp.h"

void deletion_list_put(const struct core *core, struct buffer *out)
{
    key_put(out, core->partitions.tag[0], "deletions");
}

const struct reply *deletion_list_read(struct core *core, struct pipeline *p)
{
    atomic_store(&core->deletions.looked_ms, monotonic_ms());
    deletions_ask_over(pipeline_commands(p, 0, 1), core->partitions.tag[0]);
    deletion_list_put(core, pipeline_command(p, 0, "HGETALL", 1));
    const struct reply *reply = pipeline_send(p, false) ? pipeline_take(p) : NULL;
    if (reply == NULL) {
        return NULL;
    }
    deletions_learn_over(&core->deletions, reply_integer(reply, 0));
    reply = pipeline_take(p);
    if (reply != NULL && reply->type != REPLY_ARRAY) {
        (void)pipeline_foreign(p, "a list of deletions");
        return NULL;
    }
    if (reply != NULL) {
        deletions_learn(&core->deletions, reply, redis_clock_ms(&core->clock));
    }
    return reply;
}
