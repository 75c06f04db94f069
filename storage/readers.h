/* readers.h - threads that answer questions, each over a connection of its own.
 *
 * Layer: storage.  What can be asked is a table that the caller hands over (operations.h): the
 * threads know no operation.
 *
 * A job waits in one queue until a thread is free.  Jobs that ask the same question, and wait at
 * the same time, are answered together.
 */
#ifndef STORAGE_READERS_H
#define STORAGE_READERS_H

#include "storage/core/core.h"
#include "storage/operations.h"

struct readers;

/* Start @n threads.  @operations has STORAGE_OPS entries and outlives them.  NULL: no memory or no
 * threads. */
struct readers *readers_start(struct core *core, const struct operation *operations, unsigned n);

/* Take a job of an operation that the table has.  The job is done by its deadline, also while all
 * threads are busy.  Thread-safe.  False: not taken. */
bool readers_submit(struct readers *readers, struct storage_job *job, enum storage_err *ret_err);

/* Answer what was taken; after @deadline_ms the rest with an error. */
void readers_drain(struct readers *readers, int64_t deadline_ms);

/* End the threads and free.  Nothing may be submitted any more, and what was taken must be done. */
void readers_stop(struct readers *readers);

#endif
