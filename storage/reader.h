/* reader.h - threads that answer questions, each over a connection of its own.
 *
 * Layer: storage.
 */
#ifndef STORAGE_READER_H
#define STORAGE_READER_H

#include "storage/core.h"

struct readers;

/* Start @n threads.  NULL: no memory or no threads. */
struct readers *readers_start(struct core *core, unsigned n);

/* Take a job (STORAGE_COUNT, STORAGE_PROBE, STORAGE_ROLLUP_STATUS).  Thread-safe.  False: not
 * taken. */
bool readers_submit(struct readers *readers, struct storage_job *job, enum storage_err *ret_err);

/* Answer what was taken; after @deadline_ms the rest with an error. */
void readers_drain(struct readers *readers, int64_t deadline_ms);

void readers_stop(struct readers *readers);

#endif
