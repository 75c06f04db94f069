/* readers_queue.h - which of the questions that wait is begun next, and by which reader.
 *
 * Layer: storage, private to the readers.  All readers share one queue, and its lock.
 *
 * A question waits without a reader as long as there is nothing to read for it:
 *
 *     entries are not safe yet        until the disk or the replicas have them (core/standing.h)
 *     the same question is settled,   until that is over; then one answer serves both
 *     or was just answered to many    (read/repeat.h)
 *     a round of folds comes first    beside writing: until the round has ended that counts what
 *                                     was acknowledged before the question (read/settled.h)
 *
 * The last row lets a few readers serve many different questions beside writing: all of them need
 * the same round, and one reader waits for it.
 */
#ifndef STORAGE_READERS_QUEUE_H
#define STORAGE_READERS_QUEUE_H

#include <pthread.h>

#include "storage/core/core.h"
#include "storage/job/queue.h"
#include "storage/operations.h"
#include "storage/read/repeat.h"

struct readers {
    struct core *core;
    const struct operation *operations; /* by enum storage_op */
    pthread_mutex_t lock;               /* guards all below */
    pthread_cond_t work, idle, watch;
    struct job_queue waiting; /* a job's cost is 1 */
    size_t running;
    bool draining, stop;
    struct repeats repeats;
    bool awaits_folds;   /* a reader does, for all that wait for them */
    int64_t folds_to_us; /* folds were asked for of all that was acknowledged before this instant */
    int64_t watch_ms;    /* when the watcher looks next; no waiting job is due before */
    bool watched;
    pthread_t watcher;
    unsigned n;
    pthread_t threads[];
};

/* Wait for the next job, and take it.  NULL: it is time to stop.  *ret_same: the jobs that its
 * answer will answer, too.  Where all is counted that the job needs, those that need more are not
 * among them: they would make it wait. */
struct storage_job *readers_next_job(
    struct readers *readers, struct reader *r, struct storage_job **ret_same);

/* Under the lock: take those of the first waiting jobs that ask what @job asks and may wait as
 * long.  Nothing of @job was read yet, and its answer is now one for the last of them.  @settled:
 * only those for which all is counted that this reader's questions need; NULL: all. */
struct storage_job *readers_take_same(
    struct readers *readers, struct storage_job *job, struct reader *settled);

#endif
