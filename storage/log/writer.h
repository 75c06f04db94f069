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
#include "storage/core/prepare.h"
#include "storage/log/unfolded.h"

struct writer;

/* What the writers of a process share.  Zeroed but for the functions. */
struct writers_share {
    struct prepared_data prepared;
    _Atomic bool is_prepared, is_preparing; /* the data; prepared: it was once */
    /* Of a cluster: some servers were away then; all are there now, and the rest is to be looked
     * at, by whoever connects next. */
    _Atomic bool is_partial, is_rest_due;
    bool prepared_once; /* whoever prepares, at a time one, has this and the above */
    /* Called on a writer's thread. */
    void (*changed)(void *data); /* what writer_away() or writer_is_connected() says */
    /* Of a cluster: take over a job of which nothing was sent, because its server is away.  False:
     * not taken. */
    bool (*elsewhere)(void *data, struct storage_job *job);
    void *data;
};

/* Start the thread; it connects at once.  @place: of the log, see core_log_partition().  Answered
 * entries go into @unfolded.  @share outlives the writer.  NULL: no memory or no thread. */
struct writer *writer_start(
    struct core *core, unsigned place, struct unfolded *unfolded, struct writers_share *share);

/* Take a job with its chunk made.  One that is not @is_new another writer had taken, and sent
 * nothing of: it is in the queue's bound already.  Thread-safe.  Anything but STORAGE_OK: not
 * taken, done() was not called. */
enum storage_err writer_submit(
    struct writer *writer, struct storage_job *job, bool is_new) MUST_CHECK;

/* Wake the thread for jobs that were submitted with `more_follow`.  Thread-safe. */
void writer_flush(struct writer *writer);

/* There may be room in @unfolded again. */
void writer_wake(struct writer *writer);

/* Why the writer is away, so that requests are not to wait for it: for a second its server could
 * not be reached, or has taken nothing (STORAGE_DOWN), or too few replicas have acknowledged
 * (STORAGE_ALONE).  STORAGE_OK: it is not.  Thread-safe. */
enum storage_err writer_away(const struct writer *writer);
bool writer_is_connected(const struct writer *writer);

/* Answer all that was taken until @deadline_ms, then the rest with an error.  _end waits for that.
 */
void writer_drain_begin(struct writer *writer, int64_t deadline_ms);
void writer_drain_end(struct writer *writer);

/* Stop the thread; nothing may be lent any more.  _end waits for that.  The threads of the others
 * look at this writer, too, so it is freed only when they have ended. */
void writer_stop_begin(struct writer *writer);
void writer_stop_end(struct writer *writer);
void writer_free(struct writer *writer);

#endif
