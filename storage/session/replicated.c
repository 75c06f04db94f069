#include "storage/session/replicated.h"

#include "storage/redis/resp.h"
#include "storage/schema/key.h"

void replicated_put(struct buffer *out, const struct script_digests *scripts, const char *tag,
    unsigned n, int64_t wait_ms)
{
    script_head(out, scripts, SCRIPT_SMALL_WRITE, 1, 4);
    key_put(out, tag, "probe");
    resp_text(out, "SET");
    resp_text(out, "1");
    resp_text(out, "EX");
    resp_text(out, "60");
    resp_head(out, 3);
    resp_text(out, "WAIT");
    resp_decimal(out, n);
    resp_decimal(out, wait_ms);
}

enum redis_status replicated_ask(struct core *core, struct session *session,
    const struct part_set *asked, unsigned n, int64_t wait_ms, int64_t deadline_ms,
    struct part_set *ret)
{
    struct dispatcher *d = session->dispatcher;
    enum redis_status status = REDIS_OK_STATUS;
    *ret = (struct part_set){.words = {0}};
    for (unsigned p = 0; p < core->partitions.n; p++) {
        if (!part_set_has(asked, p)) {
            continue;
        }
        replicated_put(dispatcher_begin(d, p, DISPATCH_ORDERED), &session->scripts,
            core->partitions.tag[p], n, wait_ms);
        if (!dispatcher_end(d, 2)) {
            dispatcher_forget(d);
            return REDIS_LOST;
        }
    }
    dispatcher_send(d, deadline_ms);
    for (unsigned p = 0; p < core->partitions.n && status == REDIS_OK_STATUS; p++) {
        const struct reply *reply = NULL;
        if (!part_set_has(asked, p)) {
            continue;
        }
        status = dispatcher_await(d, deadline_ms, &reply);
        bool is_written = status == REDIS_OK_STATUS && reply->type == REPLY_STATUS;
        if (status == REDIS_OK_STATUS) {
            status = dispatcher_await(d, deadline_ms, &reply);
        }
        if (status == REDIS_OK_STATUS && is_written && reply->type == REPLY_INTEGER &&
            reply->integer >= (int64_t)n) {
            part_set_add(ret, p);
        }
    }
    return status;
}
