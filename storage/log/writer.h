/* writer.h - the thread that writes: requests into the log, and rate limits, over one connection.
 *
 * Layer: storage.
 *
 * While an entry is on its way, arriving requests gather.  The next entry takes them all, and one
 * answer of Redis acknowledges every request in it.  There is no timer: an idle writer appends at
 * once, a busy one in larger entries.  Two entries may be under way, so that Redis has work while
 * the replies are read.
 */
#ifndef STORAGE_LOG_WRITER_H
#define STORAGE_LOG_WRITER_H

#include "storage/core/core.h"
#include "storage/log/unfolded.h"

struct writer;

/* Start the thread; it connects at once.  Answered entries go into @unfolded, and @wake is called
 * for them.  NULL: no memory or no thread. */
struct writer *writer_start(struct core *core, struct unfolded *unfolded);

/* Take a job with its chunk made.  Thread-safe.  False (and *ret_err): not taken, done() was not
 * called. */
bool writer_submit(struct writer *writer, struct storage_job *job, enum storage_err *ret_err);

/* Wake the thread for jobs that were submitted with `more_follow`.  Thread-safe. */
void writer_flush(struct writer *writer);

/* Have @tick called on the thread whenever it has done something, and when it asked to be: it
 * returns when that is (CLOCK_MONOTONIC, ms; INT64_MAX: never).  Before the first job is submitted.
 */
void writer_set_tick(
    struct writer *writer, int64_t (*tick)(void *data, int64_t now_ms), void *data);

/* Answer all that was taken until @deadline_ms, then the rest with an error. */
void writer_drain(struct writer *writer, int64_t deadline_ms);

/* Stop the thread and free; nothing may be lent any more. */
void writer_stop(struct writer *writer);

#endif
