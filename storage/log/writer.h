/* writer.h - the thread that writes: requests into the log, over one connection.
 *
 * Layer: storage.
 *
 * While an entry is on its way, arriving requests gather.  The next entry takes them all, and one
 * answer of Redis acknowledges every request in it.  There is no timer: an idle writer appends at
 * once, a busy one in larger entries.  Two entries may be under way, so that Redis has work while
 * the replies are read.
 *
 * A writer has one log, in one place, and its connection leads to the server of that place.  Of a
 * cluster a process has several of them (writers.h).
 */
#ifndef STORAGE_LOG_WRITER_H
#define STORAGE_LOG_WRITER_H

#include "storage/core/core.h"
#include "storage/log/unfolded.h"
#include "storage/prepare/prepare.h"

struct writer;

/* What the writers of a process share.  At first all is zero but the functions. */
struct writers_share {
    /* One writer at a time prepares the data, and has these two members meanwhile. */
    struct prepared_data prepared;
    bool prepared_once; /* the data was prepared before */
    /* In a cluster: the data was prepared, perhaps without servers that were away; a writer
     * prepares it now; the rest is to be prepared when no server is away; the next writer that
     * connects must prepare the rest. */
    _Atomic bool is_prepared, is_preparing, is_partial, is_rest_due;
    /* The two functions are called on a writer's thread.  What writer_away() or
     * writer_is_connected() says has changed, or which servers are reached while the writer has no
     * connection. */
    void (*changed)(void *data);
    /* In a cluster: take over a job of which nothing was sent, because its server is away.  False:
     * the job was not taken. */
    bool (*elsewhere)(void *data, struct storage_job *job);
    void *data;
};

/* Start the thread, which connects at once.  @place is that of the log, see core_log_partition().
 * Answered entries go into @unfolded.  The arguments outlive the writer.  NULL: no memory or no
 * thread. */
struct writer *writer_start(
    struct core *core, unsigned place, struct unfolded *unfolded, struct writers_share *share);

/* Take a job whose chunk is made.  Without @is_new another writer had taken the job, and sent
 * nothing of it, so no bound is checked again.  The writer owns the job until done().  Thread-safe.
 * Anything but STORAGE_OK: the job was not taken, and done() was not called. */
enum storage_err writer_submit(
    struct writer *writer, struct storage_job *job, bool is_new) MUST_CHECK;

/* Wake the thread for jobs that were submitted with `more_follow`.  Thread-safe. */
void writer_flush(struct writer *writer);

/* Wake the thread: there may be room in its `unfolded` again.  Thread-safe. */
void writer_wake(struct writer *writer);

/* Why requests must not wait for the writer: for a second its server could not be reached, or has
 * taken nothing (STORAGE_DOWN), or too few replicas have acknowledged (STORAGE_ALONE).  STORAGE_OK:
 * the writer is not away.  Thread-safe. */
enum storage_err writer_away(const struct writer *writer);

/* Has the writer a connection, over which it appends?  Thread-safe. */
bool writer_is_connected(const struct writer *writer);

/* Take no more jobs.  Answer those that were taken: until @deadline_ms (CLOCK_MONOTONIC) as usual,
 * then with an error.  _end waits until all are answered. */
void writer_drain_begin(struct writer *writer, int64_t deadline_ms);
void writer_drain_end(struct writer *writer);

/* Stop the thread, which must have no jobs any more.  _end waits for that.  The threads of other
 * writers look at this writer, too, so it is freed only when all have ended. */
void writer_stop_begin(struct writer *writer);
void writer_stop_end(struct writer *writer);
void writer_free(struct writer *writer);

#endif
