/* claims_batch.h - what the claims' thread asks Redis for together, and what comes back.
 *
 * Layer: storage, private to claims.c, which has the queue and the thread.  A batch is sorted out
 * (who is late, who must go to the writer once more), encoded as runs of claim.lua and settle.lua,
 * sent in one pipeline, and each job of it answered or put back into the queue.
 *
 * Ownership: the jobs of the batch are the thread's until they are done() or put back.  Thread
 * safety: what is under `lock` from any thread; all functions but claims_fail(), which touches
 * nothing but the job, from the thread.
 */
#ifndef STORAGE_WRITE_CLAIMS_BATCH_H
#define STORAGE_WRITE_CLAIMS_BATCH_H

#include "storage/core/session.h"
#include "storage/job/queue.h"
#include "storage/write/claims.h"

#define CLAIMS_BATCH_MAX 256 /* claims in one script: about a millisecond of Redis */

enum claim_step { STEP_CLAIM, STEP_FINISH, STEP_RELEASE };

struct claims {
    struct core *core;
    bool (*resubmit)(void *data, struct storage_job *job);
    void *resubmit_data;
    pthread_t thread;

    pthread_mutex_t lock; /* guards all up to the blank line */
    pthread_cond_t work, idle;
    struct job_queue waiting; /* a job's cost is 1 */
    bool running, draining, drained, stop;

    _Atomic uint64_t owners; /* how many were named */
    uint8_t process[8];      /* random: the first half of every owner */

    /* The thread's own. */
    struct session session;
    uint64_t epoch; /* counts connections */
    struct buffer out, keys, args;
    struct buffer tidy;       /* PEXPIREs of markers that are not needed for long any more */
    size_t n_tidy, n_tidying; /* of them: to be sent; sent and not answered */
    struct storage_job *batch[CLAIMS_BATCH_MAX];
    struct claim_run { /* one script, and the jobs in it */
        enum script script;
        size_t first, n;
    } runs[CLAIMS_BATCH_MAX];
    size_t n_runs, n_batch;
    bool hold; /* Redis asked for patience */
};

/* Have a connection, if one can be had within the time of the batch. */
void claims_connect(struct claims *claims);
void claims_disconnect(struct claims *claims);

/* Keep those of the batch that are to be asked about now; fail or send elsewhere the others. */
void claims_sort_out(struct claims *claims);

/* Ask for all of the batch, and answer it.  What could not be asked is put back. */
void claims_ask(struct claims *claims);

/* The step cannot be taken.  @err says why, and holds for a claim: nothing of its request was sent
 * (but what is in doubt, see claim.h).  Who was to be released keeps the reason that it came with.
 */
void claims_fail(struct storage_job *job, enum storage_err err);

/* claims.c's: @n jobs of the batch back to the head of the queue, in order. */
void claims_put_back(struct claims *claims, size_t first, size_t n);

#endif
