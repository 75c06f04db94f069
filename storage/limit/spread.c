/* spread.c - limits in a cluster: each lies on the server of its partition, and is asked for there.
 *
 * A limit is asked for once.  After a lost connection nobody knows whether it was charged, so the
 * job ends with STORAGE_UNKNOWN.  What a server does not carry out goes where it belongs
 * (core/dispatcher.h).
 */
#include "storage/core/asks.h"
#include "storage/core/reply_fault.h"
#include "storage/limit/limit_script.h"
#include "storage/read/operation.h"
#include "storage/schema/key.h"

struct asking {
    struct core *core;
    struct limit_job *limit; /* NULL: a reset */
    enum storage_err err;
    bool lost;
};

static bool take(void *data, size_t i, const struct reply *reply)
{
    struct asking *a = data;
    (void)i;
    if (reply->type == REPLY_ERROR) {
        enum storage_err err = reply_err(reply, &a->lost);
        atomic_fetch_add(&a->core->stats.redis_errors, 1);
        /* one that has failed half way may have taken from the limit */
        a->err = reply_fault(reply) == REPLY_FAILED ? STORAGE_UNKNOWN : err;
        return true;
    }
    if (a->limit == NULL) {
        return true;
    }
    size_t values = limit_script_values(limit_script_of(a->limit));
    if (reply->type != REPLY_ARRAY || reply->n < LIMIT_SCRIPT_HEAD + values) {
        return false;
    }
    limit_script_read(a->limit, &reply->items[LIMIT_SCRIPT_HEAD]);
    if (!a->limit->guard) {
        atomic_fetch_add(&a->core->stats.limit_checks, 1);
        atomic_fetch_add(&a->core->stats.limit_denied, a->limit->state.allowed ? 0 : 1);
        atomic_fetch_add(&a->core->stats.limit_penalised, a->limit->state.penalised ? 1 : 0);
    }
    return true;
}

static enum storage_err run(
    struct asking *a, struct asks *asks, const struct storage_job *job, bool *ret_lost)
{
    enum redis_status status = asks_run(asks, job->deadline_ms, take, a);
    *ret_lost = *ret_lost || a->lost;
    return status == REDIS_OK_STATUS ? a->err : STORAGE_UNKNOWN;
}

enum storage_err limit_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct core *core = reader->core;
    struct buffer out;
    struct asking a = {.core = core, .limit = &job->u.limit, .err = STORAGE_OK};
    struct asks asks = asks_to(&reader->session, &out);
    buffer_init(&out);
    unsigned partition = key_limit_partition(&core->partitions, job->u.limit.key);
    limit_script_write(asks_begin(&asks, partition), &reader->session.scripts, &core->partitions,
        limit_script_of(&job->u.limit), &job, 1);
    enum storage_err err = run(&a, &asks, job, ret_lost);
    buffer_release(&out);
    return err;
}

enum storage_err limit_reset_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct core *core = reader->core;
    struct buffer out;
    struct asking a = {.core = core, .err = STORAGE_OK};
    struct asks asks = asks_to(&reader->session, &out);
    buffer_init(&out);
    limit_script_write_reset(
        asks_begin(&asks, key_limit_partition(&core->partitions, job->u.limit_reset.key)),
        &core->partitions, &job->u.limit_reset);
    enum storage_err err = run(&a, &asks, job, ret_lost);
    buffer_release(&out);
    return err;
}
