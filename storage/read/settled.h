/* settled.h - is everything counted that was acknowledged before a question came?
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A request is acknowledged when it is in a log.  The request is counted a little later, partition
 * by partition (read/log_progress.h).  An answer must hold everything that was acknowledged before
 * its question came, whichever process took it.  So each question first reads the heads of all
 * logs, and the cursors of all partitions.  Mostly this one round trip shows that everything is
 * counted.
 *
 * Otherwise what is missing is counted (core_catch_up()), and heads and cursors are read again.  No
 * question waits for what is appended meanwhile: the question came earlier.
 *
 * The question itself must be read over the same connection, or, of a cluster, over the same
 * connections.  Redis may go back to an earlier state when it is restarted or replaced, and every
 * connection ends then.
 *
 * What one reader or fold finds holds for all readers: everything is counted that was acknowledged
 * before the instant core->settled_us.  A question that came before the instant needs no round trip
 * and no wait, if its reader's connection stood at the instant: as long as that connection answers,
 * Redis has not gone back since.  So while events are written, one fold serves all questions that
 * came before the fold.
 */
#ifndef STORAGE_READ_SETTLED_H
#define STORAGE_READ_SETTLED_H

#include "storage/read/cache.h"
#include "storage/read/log_progress.h"
#include "storage/session/dispatcher.h"

#define SETTLED_NEAR_MS 250 /* see settled_outlook() */

/* What the first look at the logs has seen, if everything was counted.  Between two looks that have
 * the same print nothing was acknowledged, and nothing was deleted or forgotten: see answers.h. */
struct settled_moment {
    bool is_known; /* everything was counted, and the members below are set */
    struct cache_id print;
    int64_t read_us; /* when the look began: CLOCK_MONOTONIC */
    int64_t minute;  /* Redis's clock, in minutes since 1970 */
};

/* What a reader thread needs for its waits, from wait to wait.  Zeroed at first. */
struct settled {
    struct settled_moment moment; /* of the last settled_await() */
    struct buffer text;           /* the bytes of which the print is a hash */
    struct log_progress progress;
    struct log_head *missing; /* owned; logs of which the question needs more than is counted */
    size_t n, capacity;
};

void settled_release(struct settled *settled);

/* Wait until everything is counted that was acknowledged before @job arrived.  @session is
 * connected, or has a dispatcher; *ret_lost becomes true if @session must be closed.  At @job's
 * deadline STORAGE_BEHIND: then the job's detail says how far the log is behind. */
enum storage_err settled_await(struct settled *settled, struct core *core, struct session *session,
    struct storage_job *job, bool *ret_lost) MUST_CHECK;

/* Is it known, without asking Redis, that all is counted that was acknowledged before @job arrived?
 */
bool settled_is_known(
    const struct core *core, struct session *session, const struct storage_job *job) MUST_CHECK;

/* Other jobs have joined @job, and job->arrived_us is now that of the last one.  If that job came
 * after the first look began, the look may lack what was acknowledged before the job: so the moment
 * is not known any more. */
void settled_joined(struct settled *settled, const struct storage_job *job);

/* How soon everything is counted that a job needs. */
enum settled_outlook {
    SETTLED_BY_READER, /* settled_await() has to find out */
    SETTLED_NEAR,      /* a round of folds that comes anyway is enough */
    SETTLED_NOW,       /* such a round has just ended, and mostly it was enough */
};

/* How soon is everything counted that was acknowledged before @job arrived?  SETTLED_NEAR and
 * SETTLED_NOW presume that folds are going on: this process folds what waits in its memory, or has
 * just done so and other questions are being read; and core->settled_us is less than
 * SETTLED_NEAR_MS ago. */
enum settled_outlook settled_outlook(
    const struct core *core, struct session *session, const struct storage_job *job);

/* Was everything that was read since settled_await() returned STORAGE_OK read from servers that
 * have not gone back meanwhile?  Connections tell: @since_us is what session_stands_since() was
 * then. */
bool settled_still(const struct session *session, int64_t since_us) MUST_CHECK;

#endif
