/* readers_queue.h - which of the questions that wait is begun next, and by which reader.
 *
 * Layer: storage, private to readers.c and readers_queue.c.  All readers share one queue and its
 * lock.
 *
 * A question waits without a reader as long as reading is of no use:
 *
 *     why                             until when
 *     entries are not safe yet        the disk or the replicas have the entries (core/standing.h)
 *     the same question is settled,   that is over; then one answer serves both
 *     or was just answered to many    (read/repeat.h)
 *     a round of folds comes first,   the round has ended that counts what was acknowledged before
 *     because of writing              the question (read/settled.h)
 *
 * The last row lets a few readers serve many different questions beside writing: all these
 * questions need the same round, and one reader waits for the round.
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
    pthread_mutex_t lock;               /* a leaf; guards the members below, up to `watch_ms` */
    pthread_cond_t work, idle, watch;
    struct job_queue waiting; /* a job's cost is 1 */
    size_t running;           /* how many readers are at work on a job */
    bool draining, stop;
    struct repeats repeats;
    bool awaits_folds;   /* a reader waits for a round of folds, for all jobs that do */
    int64_t folds_to_us; /* folds were asked for of what was acknowledged before this instant */
    int64_t watch_ms;    /* when the watcher looks next; no deadline in the queue is before */
    bool watched;        /* the watcher's thread was started */
    pthread_t watcher;
    unsigned n;
    pthread_t threads[];
};

/* Wait for the next job that @r may begin, and take it.  NULL: the reader must end.  *ret_same:
 * further jobs that the answer will serve.  If all is counted that the job needs, jobs that need
 * more are not among them, because they would make the job wait. */
struct storage_job *readers_next_job(
    struct readers *readers, struct reader *r, struct storage_job **ret_same);

/* Called under the lock.  Take those of the first waiting jobs that ask what @job asks and have no
 * earlier deadline.  Nothing was read for @job yet, and its answer will be as new as the last of
 * these jobs needs.  @settled: take only jobs for which all is counted, by what this reader knows;
 * NULL: take all. */
struct storage_job *readers_take_same(
    struct readers *readers, struct storage_job *job, struct reader *settled);

#endif
