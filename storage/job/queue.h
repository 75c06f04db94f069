/* queue.h - jobs that wait for their turn, in order of arrival.
 *
 * Layer: storage, pure.  Not thread-safe: its owner's lock guards it.
 */
#ifndef STORAGE_JOB_QUEUE_H
#define STORAGE_JOB_QUEUE_H

#include "storage/job/job.h"

/* Zeroed it is empty. */
struct job_queue {
    struct storage_job *first, *last;
    size_t events; /* sum of the jobs' cost, which must not change meanwhile */
};

void job_queue_append(struct job_queue *queue, struct storage_job *job);

/* In front of all others: it was taken before. */
void job_queue_prepend(struct job_queue *queue, struct storage_job *job);

/* Cut off the oldest jobs, as a list: at least one, and as many as have @max_events together. */
struct storage_job *job_queue_take(struct job_queue *queue, size_t max_events);

/* Take out the job behind @before, the first one if that is NULL.  There must be one. */
struct storage_job *job_queue_remove(struct job_queue *queue, struct storage_job *before);

/* The earliest deadline, INT64_MAX if none waits. */
int64_t job_queue_due_ms(const struct job_queue *queue);

/* Take out the jobs whose deadline is at or before @now_ms, as a list. */
struct storage_job *job_queue_take_late(struct job_queue *queue, int64_t now_ms);

#endif
