#include "storage/deletion/list.h"

#include "storage/base/clock.h"
#include "storage/redis/resp.h"

void deletion_list_key(const struct core *core, struct key *ret)
{
    key_fixed(ret, core->partitions.tag[0], "deletions", SLICE(""));
}

const struct reply *deletion_list_read(struct core *core, struct pipeline *p)
{
    struct key key;
    deletion_list_key(core, &key);
    atomic_store(&core->deletions.looked_ms, monotonic_ms());
    deletions_ask_over(pipeline_commands(p, 0, 1), core->partitions.tag[0]);
    struct buffer *out = pipeline_command(p, 0, "HGETALL", 1);
    resp_word(out, key.p, key.n);
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
