/* jobs.h - requests for a rollup pass: those that wait, and those for which a pass was begun.
 *
 * Layer: storage.  Thread-safe.
 *
 * The rollup's thread begins and finishes requests.  That thread may wait long for Redis.  So the
 * leader's thread answers the requests whose deadline passes meanwhile.
 * A request that comes while a pass is under way waits for the next pass, because the pass may have
 * looked already at what the request is about.
 *
 * No function calls a job's done() while it holds the lock.
 */
#ifndef STORAGE_ROLLUP_JOBS_H
#define STORAGE_ROLLUP_JOBS_H

#include <pthread.h>

#include "storage/base/compiler.h"
#include "storage/job/queue.h"

struct rollup_jobs {
    pthread_mutex_t lock;     /* guards the rest */
    struct job_queue waiting; /* requests that wait for the next pass */
    struct job_queue begun;   /* requests for which a pass was begun */
    bool closed;              /* no request is taken any more */
};

void rollup_jobs_init(struct rollup_jobs *jobs);
void rollup_jobs_release(struct rollup_jobs *jobs);

/* Take a request: @jobs own it until it is answered.  False: not taken, the service is stopping. */
bool rollup_jobs_add(struct rollup_jobs *jobs, struct storage_job *job) MUST_CHECK;

/* Is there any request, begun or not? */
bool rollup_jobs_any(struct rollup_jobs *jobs);

/* A pass begins for all requests that wait now. */
void rollup_jobs_begin(struct rollup_jobs *jobs);

/* Is there a request for which a pass was begun, and which is not answered yet? */
bool rollup_jobs_begun(struct rollup_jobs *jobs);

/* Answer the requests for which a pass was begun with @err; with STORAGE_OK they get a copy of
 * @result. */
void rollup_jobs_finish(
    struct rollup_jobs *jobs, enum storage_err err, const struct rollup_job *result);

/* Take out the requests whose deadline is at or before @now_ms (CLOCK_MONOTONIC), as a list in
 * *ret_late: the caller answers them.  Returns the next deadline, INT64_MAX if there is none. */
int64_t rollup_jobs_take_late(
    struct rollup_jobs *jobs, int64_t now_ms, struct storage_job **ret_late);

/* Answer all requests with STORAGE_SHUTDOWN, and take no more. */
void rollup_jobs_close(struct rollup_jobs *jobs);

#endif
