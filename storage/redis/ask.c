#include "storage/redis/ask.h"

#define OUT_KEEP (256 * 1024) /* bytes that a buffer of commands keeps for the next ones */

static enum redis_status send_out(struct redis *redis, struct buffer *out)
{
    bool queued = redis_queue(redis, out);
    buffer_clear(out, OUT_KEEP);
    return queued ? REDIS_OK_STATUS : REDIS_LOST;
}

enum redis_status redis_ask(
    struct redis *redis, struct buffer *out, int64_t deadline_ms, const struct reply **ret)
{
    enum redis_status status = send_out(redis, out);
    return status == REDIS_OK_STATUS ? redis_await(redis, deadline_ms, ret) : status;
}

enum redis_status redis_ask_all(struct redis *redis, struct buffer *out, size_t n,
    int64_t deadline_ms, redis_take_fn *take, void *data)
{
    enum redis_status status = send_out(redis, out);
    for (size_t i = 0; status == REDIS_OK_STATUS && i < n; i++) {
        const struct reply *reply = NULL;
        status = redis_await(redis, deadline_ms, &reply);
        if (status == REDIS_OK_STATUS && !take(data, i, reply)) {
            status = REDIS_LOST;
        }
    }
    return status;
}
