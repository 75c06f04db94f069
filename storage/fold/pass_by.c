#include "storage/fold/pass_by.h"

#include "storage/redis/resp.h"
#include "storage/schema/key.h"

struct passing {
    struct core *core;
    const struct batch *batch;
    uint32_t logs[BATCH_LOGS]; /* numbers of the batch's logs that have a head */
    size_t n_logs;
    uint16_t asked[PARTITIONS_MAX]; /* partitions in the order in which they are asked */
    struct fold_result result;
};

static void write_script(
    const struct passing *p, const struct session *session, unsigned partition, struct buffer *out)
{
    script_head(out, &session->scripts, SCRIPT_CURSORS, 1, 3 * p->n_logs);
    key_put(out, p->core->partitions.tag[partition], "state");
    for (size_t i = 0; i < p->n_logs; i++) {
        const struct batch_log *log = &p->batch->logs[p->logs[i]];
        resp_text(out, log->id);
        resp_decimal(out, (int64_t)log->from);
        resp_decimal(out, (int64_t)log->to);
    }
}

static bool pass_by_take(void *data, size_t i, const struct reply *reply)
{
    struct passing *p = data;
    unsigned partition = p->asked[i];
    if (reply->type == REPLY_ERROR) {
        return fold_note_error(p->core, reply, &p->result.err);
    }
    core_note_state(p->core, partition, reply_integer(reply, -1) < 0);
    if (reply_integer(reply, -1) < 0) {
        p->result.err = p->result.err == STORAGE_OK ? STORAGE_STATE_LOST : p->result.err;
    } else if (reply->integer > 0 && (size_t)reply->integer <= p->n_logs) {
        p->result.end = FOLD_STALE;
        p->result.log = p->logs[reply->integer - 1];
    }
    return true;
}

struct fold_result pass_by(struct core *core, struct session *session, const struct batch *batch,
    const struct heads *heads, int64_t deadline_ms)
{
    struct passing p = {.core = core, .batch = batch, .result = {.end = FOLD_DONE}};
    struct asks asks = asks_to(session);
    for (uint32_t l = 0; l < batch->n_logs; l++) {
        if (heads_find(heads, batch->logs[l].id, l) != NULL) {
            p.logs[p.n_logs++] = l;
        }
    }
    for (unsigned i = 0; p.n_logs > 0 && i < core->partitions.n; i++) {
        if (batch->tasks[i].n == 0) {
            p.asked[asks.n] = (uint16_t)i;
            write_script(&p, session, i, asks_begin(&asks, i));
        }
    }
    bool lost = asks.n > 0 && asks_run(&asks, deadline_ms, pass_by_take, &p) != REDIS_OK_STATUS;
    if (lost) {
        p.result.end = FOLD_LOST;
    } else if (p.result.end == FOLD_DONE && p.result.err != STORAGE_OK) {
        p.result.end = FOLD_ERR;
    }
    return p.result;
}
