#include "storage/read/probe.h"

#include "storage/base/buffer.h"
#include "storage/core/reply_fault.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

enum storage_err probe_run(struct reader *r, struct storage_job *job, bool *ret_lost)
{
    struct key key;
    struct buffer b;
    const struct reply *reply = NULL;
    buffer_init(&b);
    key_fixed(&key, r->core->partitions.tag[0], "probe", SLICE(""));
    resp_head(&b, 5);
    resp_text(&b, "SET");
    resp_word(&b, key.p, key.n);
    resp_text(&b, "1");
    resp_text(&b, "EX");
    resp_text(&b, "60");
    bool queued = redis_queue(r->session.redis, &b);
    buffer_release(&b);
    if (!queued || redis_await(r->session.redis, job->deadline_ms, &reply) != REDIS_OK_STATUS) {
        *ret_lost = true;
        return STORAGE_DOWN;
    }
    if (reply->type != REPLY_ERROR) {
        return STORAGE_OK;
    }
    reader_op_detail(job, reply);
    return reply_err(reply, ret_lost);
}
