/* look_key.c - was an Idempotency-Key used?  Its record tells, and nothing is changed. */
#include "storage/read/operation.h"

#include "storage/log/record.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/replicated.h"

#define WAIT_MS 100 /* a reader waits so long for replicas */

/* Do as many replicas have the record as a write waits for?  Else it must not be told: the master
 * and this process may die together.  The server that is asked is the one that told the record. */
static bool is_replicated(struct pipeline *p, const struct core *core, unsigned partition)
{
    uint64_t have = 0;
    if (atomic_load(&core->lacks_replicas)) { /* a reader would wait in vain */
        return pipeline_fail(p, STORAGE_ALONE);
    }
    pipeline_keep_order(p);
    pipeline_stay(p, true);
    replicated_put(pipeline_commands(p, partition, 2), &p->session->scripts,
        core->partitions.tag[partition], core->config.ack_replicas, WAIT_MS);
    if (!pipeline_send(p, false) || pipeline_take(p) == NULL || !pipeline_number(p, &have)) {
        return false;
    }
    return (int64_t)have >= core->config.ack_replicas || pipeline_fail(p, STORAGE_ALONE);
}

enum storage_err look_key_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct request_key *asked = job->u.look_key;
    struct pipeline p;
    struct key key;
    unsigned partition =
        core_log_partition(reader->core, core_log_of_key(reader->core, &asked->key));
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct buffer *out = pipeline_command(&p, partition, "GET", 1);
    resp_slice(out, key_record(&key, reader->core->partitions.tag[partition], &asked->key));
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
