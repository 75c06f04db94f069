#include "storage/read/operation.h"

void reader_release(struct reader *reader)
{
    session_close(&reader->session);
    for (size_t op = 0; op < STORAGE_OPS; op++) {
        if (reader->scratch[op].p != NULL) {
            reader->scratch[op].free(reader->scratch[op].p);
        }
    }
}

void reader_op_detail(struct storage_job *job, const struct reply *reply)
{
    for (size_t i = 0; i < sizeof(job->detail) - 1 && i < reply->text.n; i++) {
        job->detail[i] = reply->text.p[i];
        job->detail[i + 1] = '\0';
    }
}
