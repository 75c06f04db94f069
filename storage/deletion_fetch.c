#include "storage/deletion_fetch.h"

#include <stdlib.h>

#include "storage/base/clock.h"

#define FETCH_MS 2000

static void deletion_fetched(struct storage_job *job)
{
    free(job);
}

void deletion_fetch(struct core *core, struct readers *readers)
{
    enum storage_err err;
    int64_t now_ms = monotonic_ms();
    if (!deletions_look_due(&core->deletions, now_ms)) {
        return;
    }
    struct storage_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return; /* in a second */
    }
    job->op = STORAGE_DELETIONS;
    job->deadline_ms = now_ms + FETCH_MS;
    job->done = deletion_fetched;
    if (!readers_submit(readers, job, &err)) {
        free(job);
    }
}
