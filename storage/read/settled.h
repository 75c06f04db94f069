/* settled.h - before a question is read: is all counted that was acknowledged before it came?
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A request is acknowledged when it is in a log.  It is counted a little later, partition by
 * partition (core/log_progress.h).  An answer must hold everything that was acknowledged before its
 * question came, whichever process took it.  So each question first reads the heads of all logs,
 * and the cursors of all partitions: mostly one round trip, and everything is counted.
 *
 * Otherwise what is missing is counted first (core_catch_up()), and the reading begins again.  What
 * is appended meanwhile is not waited for: the question came earlier.
 *
 * The question itself must be read over the same connection, or, of a cluster, over the same
 * connections.  Redis may go back to an earlier state when it is restarted or replaced, and every
 * connection ends then.
 *
 * What one reader or fold finds holds for all: core->settled_us is an instant, and everything that
 * was acknowledged before the instant is counted.  A question that came before the instant needs no
 * round trip and no wait, if its reader's connection stood at the instant: so Redis has not gone
 * back since, as long as that connection answers.  Beside writing, one fold thus serves all
 * questions that came before the fold.
 */
#ifndef STORAGE_READ_SETTLED_H
#define STORAGE_READ_SETTLED_H

#include "storage/core/dispatcher.h"
#include "storage/core/log_progress.h"
#include "storage/read/cache.h"

#define SETTLED_NEAR_MS 250

/* Between two questions that have the same print nothing was acknowledged, and nothing was deleted
 * or forgotten: see answers.h. */
struct settled_moment {
    bool is_known; /* the rest is only where everything was counted at the first look */
    struct cache_id print;
    int64_t read_us; /* before the reading began; CLOCK_MONOTONIC */
    int64_t minute;  /* of Redis's clock */
};

/* Zeroed at first. */
struct settled {
    struct settled_moment moment; /* of the last settled_await() */
    struct buffer text;           /* of its print */
    struct log_progress progress;
    struct log_head *missing; /* owned; logs of which the question needs more than is counted */
    size_t n, capacity;
};

void settled_release(struct settled *settled);

/* Wait until everything is counted that was acknowledged before @job arrived.  @session is
 * connected, or has a dispatcher; *ret_lost becomes true if it must be closed.  At @job's deadline
 * STORAGE_BEHIND: the job's detail then says how far the log is behind. */
enum storage_err settled_await(struct settled *settled, struct core *core, struct session *session,
    struct storage_job *job, bool *ret_lost) MUST_CHECK;

/* Is it known, without asking Redis, that all is counted that was acknowledged before @job arrived?
 */
bool settled_is_known(
    const struct core *core, struct session *session, const struct storage_job *job) MUST_CHECK;

/* @job was joined by others, which may have come later, and arrived_us is that of the last one.
 * What was seen at the first look may then lack what was acknowledged before they came: what is
 * known of that moment is no answer to them. */
void settled_joined(struct settled *settled, const struct storage_job *job);

/* What is to be done for a job that needs everything counted. */
enum settled_outlook {
    SETTLED_BY_READER, /* settled_await() has to find out */
    SETTLED_NEAR,      /* beside writing: a round of folds is enough */
    SETTLED_NOW,       /* beside writing: a round has ended that was enough, mostly */
};

/* Beside writing means: this process folds what waits in its memory, or has just done so and other
 * questions are being read; and the last round has ended well, less than SETTLED_NEAR_MS ago. */
enum settled_outlook settled_outlook(
    const struct core *core, struct session *session, const struct storage_job *job);

/* What was read since settled_await() has returned, with STORAGE_OK, was read of servers that have
 * not gone back meanwhile, as far as connections tell.  @since_us: session_stands_since() of then.
 */
bool settled_still(const struct session *session, int64_t since_us) MUST_CHECK;

#endif
