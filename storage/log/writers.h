/* writers.h - the writers of a process: which of them takes a request.
 *
 * Layer: storage.
 *
 * Where one server has all partitions there is one writer, with one log.  In a cluster a log lies
 * in one of several places (core_log_partition()), and there is a writer for each place that the
 * process appends to; it is started when it is needed first.
 *
 *     a request without a key    the writer at home, a place that is drawn at the start; another
 *                                place is drawn when the server of this one is away
 *     a request with a key       the writer of the place that has the key's record, so that record
 *                                and entry change in one step
 *
 * A writer is away when its server could not be reached for a second, or has taken nothing for so
 * long because a slot is being moved, or when too few replicas have what the server took.  Then a
 * request with a key of that place is refused at once.  The entries that a writer holds stay with
 * the writer, under their numbers in its log.
 */
#ifndef STORAGE_LOG_WRITERS_H
#define STORAGE_LOG_WRITERS_H

#include "storage/log/writer.h"

struct writers;

/* Start the writer at home.  @core and @unfolded outlive the writers.  NULL: no memory or no
 * thread. */
struct writers *writers_start(struct core *core, struct unfolded *unfolded);

/* Give a STORAGE_WRITE to its writer: see writer_submit().  Thread-safe. */
enum storage_err writers_submit(struct writers *writers, struct storage_job *job) MUST_CHECK;

/* Wake each writer that got a job with `more_follow`: see writer_flush().  Thread-safe. */
void writers_flush(struct writers *writers);

/* Take no more jobs, and wait until all are answered: until @deadline_ms (CLOCK_MONOTONIC) as
 * usual, then with an error. */
void writers_drain(struct writers *writers, int64_t deadline_ms);

/* Stop the threads, which must have no jobs any more, and free. */
void writers_stop(struct writers *writers);

#endif
