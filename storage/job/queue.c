#include "storage/job/queue.h"

void job_queue_append(struct job_queue *queue, struct storage_job *job)
{
    job->next = NULL;
    if (queue->last == NULL) {
        queue->first = job;
    } else {
        queue->last->next = job;
    }
    queue->last = job;
    queue->events += job->cost;
}

struct storage_job *job_queue_take(struct job_queue *queue, size_t max_events)
{
    struct storage_job *jobs = queue->first;
    struct storage_job *end = NULL;
    size_t events = 0;
    while (queue->first != NULL && (end == NULL || events + queue->first->cost <= max_events)) {
        end = queue->first;
        events += end->cost;
        queue->first = end->next;
    }
    if (end != NULL) {
        end->next = NULL;
    }
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    queue->events -= events;
    return jobs;
}

struct storage_job *job_queue_remove(struct job_queue *queue, struct storage_job *before)
{
    struct storage_job **at = before != NULL ? &before->next : &queue->first;
    struct storage_job *job = *at;
    *at = job->next;
    if (queue->last == job) {
        queue->last = before;
    }
    queue->events -= job->cost;
    job->next = NULL;
    return job;
}

int64_t job_queue_due_ms(const struct job_queue *queue)
{
    int64_t due_ms = INT64_MAX;
    for (const struct storage_job *job = queue->first; job != NULL; job = job->next) {
        due_ms = job->deadline_ms < due_ms ? job->deadline_ms : due_ms;
    }
    return due_ms;
}

struct storage_job *job_queue_take_late(struct job_queue *queue, int64_t now_ms)
{
    struct storage_job *late = NULL;
    struct storage_job **end = &late;
    struct storage_job **at = &queue->first;
    queue->last = NULL;
    while (*at != NULL) {
        struct storage_job *job = *at;
        if (job->deadline_ms > now_ms) {
            queue->last = job;
            at = &job->next;
            continue;
        }
        *at = job->next;
        queue->events -= job->cost;
        job->next = NULL;
        *end = job;
        end = &job->next;
    }
    return late;
}
