#include "storage/rollup/jobs.h"

#include "storage/base/cond.h"

void rollup_jobs_init(struct rollup_jobs *jobs)
{
    *jobs = (struct rollup_jobs){.closed = false};
    mutex_init(&jobs->lock);
}

void rollup_jobs_release(struct rollup_jobs *jobs)
{
    pthread_mutex_destroy(&jobs->lock);
}

bool rollup_jobs_add(struct rollup_jobs *jobs, struct storage_job *job)
{
    job->cost = 1;
    pthread_mutex_lock(&jobs->lock);
    bool open = !jobs->closed;
    if (open) {
        job_queue_append(&jobs->waiting, job);
    }
    pthread_mutex_unlock(&jobs->lock);
    return open;
}

bool rollup_jobs_any(struct rollup_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    bool any = jobs->waiting.first != NULL || jobs->begun.first != NULL;
    pthread_mutex_unlock(&jobs->lock);
    return any;
}

void rollup_jobs_begin(struct rollup_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    while (jobs->waiting.first != NULL) {
        job_queue_append(&jobs->begun, job_queue_remove(&jobs->waiting, NULL));
    }
    pthread_mutex_unlock(&jobs->lock);
}

bool rollup_jobs_begun(struct rollup_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    bool any = jobs->begun.first != NULL;
    pthread_mutex_unlock(&jobs->lock);
    return any;
}

void rollup_jobs_finish(
    struct rollup_jobs *jobs, enum storage_err err, const struct rollup_job *result)
{
    pthread_mutex_lock(&jobs->lock);
    struct storage_job *list = job_queue_take(&jobs->begun, SIZE_MAX);
    pthread_mutex_unlock(&jobs->lock);
    for (struct storage_job *job = list; err == STORAGE_OK && job != NULL; job = job->next) {
        job->u.rollup = *result;
    }
    jobs_done(list, err);
}

int64_t rollup_jobs_take_late(
    struct rollup_jobs *jobs, int64_t now_ms, struct storage_job **ret_late)
{
    struct job_queue late = {0};
    struct job_queue *queues[] = {&jobs->begun, &jobs->waiting};
    int64_t due_ms = INT64_MAX;
    pthread_mutex_lock(&jobs->lock);
    for (size_t i = 0; i < 2; i++) {
        struct storage_job *next;
        for (struct storage_job *job = job_queue_take_late(queues[i], now_ms); job != NULL;
             job = next) {
            next = job->next;
            job_queue_append(&late, job);
        }
        int64_t next_ms = job_queue_due_ms(queues[i]);
        due_ms = next_ms < due_ms ? next_ms : due_ms;
    }
    pthread_mutex_unlock(&jobs->lock);
    *ret_late = late.first;
    return due_ms;
}

void rollup_jobs_close(struct rollup_jobs *jobs)
{
    struct storage_job *left = NULL;
    pthread_mutex_lock(&jobs->lock);
    jobs->closed = true;
    pthread_mutex_unlock(&jobs->lock);
    (void)rollup_jobs_take_late(jobs, INT64_MAX, &left);
    jobs_done(left, STORAGE_SHUTDOWN);
}
