/* look_key.c - was an Idempotency-Key used?  Its record tells, and nothing is changed. */
#include "storage/read/operation.h"

#include "storage/log/record.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

enum storage_err look_key_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct request_key *asked = job->u.look_key;
    struct pipeline p;
    struct key key;
    unsigned partition =
        core_log_partition(reader->core, core_log_of_key(reader->core, &asked->key));
    key_record(&key, reader->core->partitions.tag[partition], &asked->key);
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct buffer *out = pipeline_command(&p, partition, "GET", 1);
    resp_word(out, key.p, key.n);
    const struct reply *reply = pipeline_ask(&p, false);
    if (reply != NULL) {
        struct slice record = reply->type == REPLY_TEXT ? reply->text : SLICE("");
        if (!record_tell(record, record_look(record, &asked->body), asked)) {
            (void)pipeline_fail(&p, STORAGE_NOMEM);
        }
    }
    return pipeline_answer(&p, job, ret_lost);
}
