/* readers.h - threads that answer questions, each over a connection of its own.
 *
 * Layer: storage.  The caller hands over a table of the operations (operations.h), so the threads
 * know no operation by name.
 *
 * A job waits in one queue until a thread is free.  Jobs that ask the same question, and wait at
 * the same time, are answered together.
 */
#ifndef STORAGE_READERS_H
#define STORAGE_READERS_H

#include "storage/core/core.h"
#include "storage/operations.h"

struct readers;

/* Start @n threads.  @operations has STORAGE_OPS entries and outlives the threads.  NULL: no memory
 * or no threads. */
struct readers *readers_start(struct core *core, const struct operation *operations, unsigned n);

/* Take a job of an operation that the table has.  The job is done by its deadline, also while all
 * threads are busy.  Thread-safe.  False: the job is not taken, and *ret_err says why. */
bool readers_submit(struct readers *readers, struct storage_job *job, enum storage_err *ret_err);

/* Take no more jobs, and have those that were taken answered.  After @deadline_ms (CLOCK_MONOTONIC)
 * jobs that no thread has begun get STORAGE_SHUTDOWN. */
void readers_drain(struct readers *readers, int64_t deadline_ms);

/* End the threads, and free the readers.  All jobs must be done, and no more may be submitted. */
void readers_stop(struct readers *readers);

#endif
