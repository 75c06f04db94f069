/* probe.c - is Redis ready?  One write, of a key that expires after a minute, proves that Redis
 * takes writes. */
#include "storage/read/operation.h"

#include "storage/base/buffer.h"
#include "storage/core/reply_fault.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

enum storage_err probe_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct pipeline p;
    struct key key;
    key_fixed(&key, reader->core->partitions.tag[0], "probe", SLICE(""));
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct buffer *out = pipeline_command(&p, 0, "SET", 4);
    resp_word(out, key.p, key.n);
    resp_text(out, "1");
    resp_text(out, "EX");
    resp_text(out, "60");
    (void)pipeline_ask(&p, false); /* whether the key is there matters to nobody */
    return pipeline_answer(&p, job, ret_lost);
}
