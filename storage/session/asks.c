#include "storage/session/asks.h"

#include "storage/schema/key.h"

static void end_command(struct asks *a)
{
    if (a->n > 0 && a->session->dispatcher != NULL) {
        a->failed = !dispatcher_end(a->session->dispatcher, 1) || a->failed;
    }
}

struct buffer *asks_begin(struct asks *a, unsigned partition)
{
    end_command(a);
    a->n++;
    return a->session->dispatcher == NULL
               ? &a->out
               : dispatcher_begin(a->session->dispatcher, partition, DISPATCH_SINGLE);
}

struct buffer *asks_command(struct asks *a, const struct core *core, unsigned partition,
    const char *command, const char *name, size_t n)
{
    struct buffer *out = asks_begin(a, partition);
    key_command(out, command, core->partitions.tag[partition], name, n);
    return out;
}

/* Hand the replies to @take, up to the first one that it refuses. */
static enum redis_status run_spread(
    struct asks *a, int64_t deadline_ms, redis_take_fn *take, void *data)
{
    struct dispatcher *dispatcher = a->session->dispatcher;
    enum redis_status status = REDIS_OK_STATUS;
    if (a->failed) {
        dispatcher_forget(dispatcher);
        return REDIS_LOST;
    }
    dispatcher_send(dispatcher, deadline_ms);
    for (size_t i = 0; status == REDIS_OK_STATUS && i < a->n; i++) {
        const struct reply *reply;
        status = dispatcher_await(dispatcher, deadline_ms, &reply);
        if (status == REDIS_OK_STATUS && !take(data, i, reply)) {
            dispatcher_forget(dispatcher);
            status = REDIS_LOST;
        }
    }
    return status;
}

enum redis_status asks_run(struct asks *a, int64_t deadline_ms, redis_take_fn *take, void *data)
{
    end_command(a);
    a->starved = a->session->dispatcher != NULL ? a->failed : a->out.failed;
    enum redis_status status =
        a->session->dispatcher != NULL
            ? run_spread(a, deadline_ms, take, data)
            : redis_ask_all(a->session->redis, &a->out, a->n, deadline_ms, take, data);
    buffer_release(&a->out);
    a->n = 0;
    a->failed = false;
    return status;
}
