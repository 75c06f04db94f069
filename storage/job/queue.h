/* queue.h - jobs that wait for their turn, in order of arrival.
 *
 * Layer: storage, pure.  Not thread-safe: the owner's lock guards a queue.
 *
 * A queue links the jobs through their member `next` and owns none of them.  Each job has a cost,
 * by which an owner bounds what waits.  The cost must not change while the job waits.
 */
#ifndef STORAGE_JOB_QUEUE_H
#define STORAGE_JOB_QUEUE_H

#include "storage/base/compiler.h"
#include "storage/job/job.h"

/* A zeroed queue is empty. */
struct job_queue {
    struct storage_job *first, *last;
    size_t events; /* sum of the jobs' cost */
};

/* Put @job behind all others. */
void job_queue_append(struct job_queue *queue, struct storage_job *job);

/* Cut off the oldest jobs and return them as a list, linked by `next`: as many as cost @max_events
 * together, but at least one.  NULL: the queue is empty. */
struct storage_job *job_queue_take(struct job_queue *queue, size_t max_events) MUST_CHECK;

/* Take out and return the job behind @before; @before NULL: the first one.  There must be one. */
struct storage_job *job_queue_remove(struct job_queue *queue, struct storage_job *before);

/* The earliest deadline of all jobs (CLOCK_MONOTONIC); INT64_MAX: none waits. */
int64_t job_queue_due_ms(const struct job_queue *queue);

/* Take out the jobs whose deadline is at or before @now_ms (CLOCK_MONOTONIC), and return them as a
 * list in order of arrival.  NULL: there is none. */
struct storage_job *job_queue_take_late(struct job_queue *queue, int64_t now_ms) MUST_CHECK;

#endif
