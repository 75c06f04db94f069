#include "storage/rollup/jobs.h"

void rollup_jobs_init(struct rollup_jobs *jobs)
{
    *jobs = (struct rollup_jobs){.first = NULL};
    pthread_mutex_init(&jobs->lock, NULL);
}

void rollup_jobs_release(struct rollup_jobs *jobs)
{
    pthread_mutex_destroy(&jobs->lock);
}

bool rollup_jobs_add(struct rollup_jobs *jobs, struct storage_job *job)
{
    pthread_mutex_lock(&jobs->lock);
    bool open = !jobs->closed;
    if (open) {
        job->begun = false;
        job->next = jobs->first;
        jobs->first = job;
    }
    pthread_mutex_unlock(&jobs->lock);
    return open;
}

bool rollup_jobs_wait(struct rollup_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    bool any = jobs->first != NULL;
    pthread_mutex_unlock(&jobs->lock);
    return any;
}

bool rollup_jobs_begin(struct rollup_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    bool any = jobs->first != NULL;
    for (struct storage_job *job = jobs->first; job != NULL; job = job->next) {
        job->begun = true;
    }
    pthread_mutex_unlock(&jobs->lock);
    return any;
}

bool rollup_jobs_begun(struct rollup_jobs *jobs)
{
    bool any = false;
    pthread_mutex_lock(&jobs->lock);
    for (const struct storage_job *job = jobs->first; job != NULL; job = job->next) {
        any = any || job->begun;
    }
    pthread_mutex_unlock(&jobs->lock);
    return any;
}

/* Take out those begun (@begun) and those with a deadline at or before @now_ms; the rest stay. */
static struct storage_job *take(struct rollup_jobs *jobs, bool begun, int64_t now_ms)
{
    struct storage_job *taken = NULL;
    pthread_mutex_lock(&jobs->lock);
    for (struct storage_job **at = &jobs->first; *at != NULL;) {
        struct storage_job *job = *at;
        if ((begun && job->begun) || job->deadline_ms <= now_ms) {
            *at = job->next;
            job->next = taken;
            taken = job;
        } else {
            at = &job->next;
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    return taken;
}

static void answer(struct storage_job *job, enum storage_err err, const struct rollup_job *result)
{
    while (job != NULL) {
        struct storage_job *next = job->next;
        if (err == STORAGE_OK) {
            job->u.rollup = *result;
        }
        job_done(job, err);
        job = next;
    }
}

void rollup_jobs_finish(
    struct rollup_jobs *jobs, enum storage_err err, const struct rollup_job *result)
{
    answer(take(jobs, true, INT64_MIN), err, result);
}

int64_t rollup_jobs_late(struct rollup_jobs *jobs, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    answer(take(jobs, false, now_ms), STORAGE_UNKNOWN, NULL);
    pthread_mutex_lock(&jobs->lock);
    for (const struct storage_job *job = jobs->first; job != NULL; job = job->next) {
        next_ms = job->deadline_ms < next_ms ? job->deadline_ms : next_ms;
    }
    pthread_mutex_unlock(&jobs->lock);
    return next_ms;
}

void rollup_jobs_close(struct rollup_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->closed = true;
    pthread_mutex_unlock(&jobs->lock);
    answer(take(jobs, false, INT64_MAX), STORAGE_SHUTDOWN, NULL);
}
