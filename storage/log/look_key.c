/* look_key.c - was an Idempotency-Key used?  Its record tells, and nothing is changed. */
#include "storage/read/operation.h"

#include "storage/base/clock.h"
#include "storage/core/replicated.h"
#include "storage/log/record.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* Do as many replicas have the record as a write waits for?  Then it may be told: the master and
 * this process may die together. */
static bool is_replicated(struct pipeline *p, const struct core *core, unsigned partition)
{
    struct key key;
    int64_t n = core->config.ack_replicas;
    int64_t left_ms = p->deadline_ms - monotonic_ms();
    struct buffer *out = pipeline_command(p, partition, "SET", 4); /* see core/replicated.h */
    key_fixed(&key, core->partitions.tag[partition], "probe", SLICE(""));
    resp_word(out, key.p, key.n);
    resp_text(out, "1");
    resp_text(out, "EX");
    resp_text(out, "60");
    out = pipeline_command(p, partition, "WAIT", 2);
    resp_decimal(out, n);
    resp_decimal(out, left_ms / 2 < REPLICAS_PATIENCE_MS ? left_ms / 2 + 1 : REPLICAS_PATIENCE_MS);
    uint64_t have = 0;
    if (!pipeline_send(p, false) || pipeline_take(p) == NULL || !pipeline_number(p, &have)) {
        return false;
    }
    return (int64_t)have >= n || pipeline_fail(p, STORAGE_ALONE);
}

enum storage_err look_key_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct request_key *asked = job->u.look_key;
    struct pipeline p;
    struct key key;
    unsigned partition =
        core_log_partition(reader->core, core_log_of_key(reader->core, &asked->key));
    key_record(&key, reader->core->partitions.tag[partition], &asked->key);
    pipeline_init(&p, &reader->session, job->deadline_ms);
    pipeline_keep_order(&p);
    struct buffer *out = pipeline_command(&p, partition, "GET", 1);
    resp_word(out, key.p, key.n);
    const struct reply *reply = pipeline_ask(&p, false);
    if (reply != NULL) {
        struct slice record = reply->type == REPLY_TEXT ? reply->text : SLICE("");
        if (!record_tell(record, record_look(record, &asked->body), asked)) {
            (void)pipeline_fail(&p, STORAGE_NOMEM);
        } else if (reader->core->config.ack_replicas > 0 && record.n > 0) {
            (void)is_replicated(&p, reader->core, partition);
        }
    }
    return pipeline_answer(&p, job, ret_lost);
}
