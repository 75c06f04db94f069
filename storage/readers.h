/* readers.h - threads that answer questions, each over a connection of its own.
 *
 * Layer: storage.
 */
#ifndef STORAGE_READERS_H
#define STORAGE_READERS_H

#include "storage/core/core.h"

struct readers;

/* Start @n threads.  NULL: no memory or no threads. */
struct readers *readers_start(struct core *core, unsigned n);

/* Take a job of one of the operations in readers.c's table; it is done by its deadline, also while
 * all readers are busy.  Thread-safe.  False: not taken. */
bool readers_submit(struct readers *readers, struct storage_job *job, enum storage_err *ret_err);

/* Answer what was taken; after @deadline_ms the rest with an error. */
void readers_drain(struct readers *readers, int64_t deadline_ms);

/* End the threads and free.  Nothing may be submitted any more, and what was taken must be done. */
void readers_stop(struct readers *readers);

#endif
