/* writers.h - the writers of a process: which of them takes a request.
 *
 * Layer: storage.
 *
 * Where one server has all partitions there is one writer, with one log.  In a cluster a log lies
 * in one of several places (core_log_partition()), and there is a writer for each place that the
 * process appends to; it is started when it is needed first.
 *
 *     a request without a key    the writer at home, a place that is drawn at the start; another
 *                                place is drawn when its server is away
 *     a request with a key       the writer of the place that has the key's record, so that record
 *                                and entry change in one step
 *
 * A writer is away when its server could not be reached for a second, or has taken nothing for so
 * long because a slot is being moved, or when too few replicas have what it took.  A request with a
 * key of that place is refused at once then.  What a writer holds stays with it, under the ids of
 * its log.
 */
#ifndef STORAGE_LOG_WRITERS_H
#define STORAGE_LOG_WRITERS_H

#include "storage/log/writer.h"

struct writers;

/* Start the writer at home.  NULL: no memory or no thread. */
struct writers *writers_start(struct core *core, struct unfolded *unfolded);

/* Take a STORAGE_WRITE: see writer_submit(). */
enum storage_err writers_submit(struct writers *writers, struct storage_job *job) MUST_CHECK;

/* See writer_flush(): each writer that a job of `more_follow` was given to. */
void writers_flush(struct writers *writers);

/* Answer all that was taken until @deadline_ms, then the rest with an error. */
void writers_drain(struct writers *writers, int64_t deadline_ms);

/* Stop the threads and free; nothing may be lent any more. */
void writers_stop(struct writers *writers);

#endif
