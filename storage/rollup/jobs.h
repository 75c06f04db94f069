/* jobs.h - requests for a pass that wait for one.
 *
 * Layer: storage.  Thread-safe: the rollup's thread begins and finishes them, the leader's, which
 * never waits long, answers those that are late.
 */
#ifndef STORAGE_ROLLUP_JOBS_H
#define STORAGE_ROLLUP_JOBS_H

#include "storage/core/core.h"

struct rollup_jobs {
    pthread_mutex_t lock; /* guards the rest */
    struct storage_job *first;
    bool closed;
};

void rollup_jobs_init(struct rollup_jobs *jobs);
void rollup_jobs_release(struct rollup_jobs *jobs);

/* False: not taken, the service is stopping. */
bool rollup_jobs_add(struct rollup_jobs *jobs, struct storage_job *job);

/* Does any wait? */
bool rollup_jobs_wait(struct rollup_jobs *jobs);

/* A pass begins that serves all that wait now; true if there are any. */
bool rollup_jobs_begin(struct rollup_jobs *jobs);

/* Are any of those begun still here? */
bool rollup_jobs_begun(struct rollup_jobs *jobs);

/* Answer those begun; with STORAGE_OK they get @result. */
void rollup_jobs_finish(
    struct rollup_jobs *jobs, enum storage_err err, const struct rollup_job *result);

/* Answer those that are late by @now_ms; returns the next deadline, INT64_MAX if there is none. */
int64_t rollup_jobs_late(struct rollup_jobs *jobs, int64_t now_ms);

/* Answer all, and take no more. */
void rollup_jobs_close(struct rollup_jobs *jobs);

#endif
