/* writer.h - the thread that writes: group commit over one connection.
 *
 * Layer: storage.
 * While a flush is on its way, arriving jobs gather; the next flush takes them all, merges them,
 * and its round trip acknowledges every job in it.  No timer: an idle writer flushes at once, a
 * busy one in bigger batches.  Two flushes may be under way, so that Redis has work while the
 * replies are read.
 */
#ifndef STORAGE_WRITE_WRITER_H
#define STORAGE_WRITE_WRITER_H

#include "storage/core/core.h"

struct writer;

/* Start the thread; it connects at once.  NULL: no memory or no thread. */
struct seen_fold; /* who saw what, on its way into filters: told when a log is due */
struct writer *writer_start(struct core *core, struct seen_fold *seen_fold);

/* Take a job with its rows made.  Thread-safe.  False (and *ret_err): not taken, done() was not
 * called. */
bool writer_submit(struct writer *writer, struct storage_job *job, enum storage_err *ret_err);

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
