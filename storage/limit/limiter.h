/* limiter.h - rate limits on one connection: jobs in, scripts out, replies to jobs.
 *
 * Layer: storage.  Not thread-safe: it belongs to the sender that has the connection (senders.h).
 *
 * Many clients ask for rate limits at the same time.  The jobs that wait are sent together: those
 * of one script share a call (limit_script.h).
 *
 * A script is sent once.  If the connection is lost before the reply, its jobs end with
 * STORAGE_UNKNOWN: the script may have taken from the limit, and a second copy could take twice.  A
 * script that Redis refuses to run (LOADING, NOSCRIPT and the like) did nothing, and may be sent
 * again.
 */
#ifndef STORAGE_LIMIT_LIMITER_H
#define STORAGE_LIMIT_LIMITER_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"
#include "storage/job/queue.h"
#include "storage/session/session.h"

#define LIMITER_JOBS_MAX 256 /* jobs under way */

struct limiter {
    struct core *core;
    struct sent_job {
        struct storage_job *job; /* NULL: the job was ended before its reply came */
        uint8_t n_values;        /* how many values the reply has for the job */
        bool last;               /* the job is the last one of its script's call */
    } sent[LIMITER_JOBS_MAX];
    size_t n_taken, n_sent; /* sent[n_taken .. n_sent) are under way: replies come in this order */
    struct job_queue again; /* jobs that did not run, to be sent again */
    struct buffer out;      /* the commands to send */
};

void limiter_init(struct limiter *l, struct core *core);
void limiter_release(struct limiter *l);

/* Write @jobs, a list of at most LIMITER_JOBS_MAX, as scripts into l->out.  None is under way.
 * False: out of memory; l->out must not be sent, and limiter_end() ends the jobs. */
bool limiter_write(
    struct limiter *l, const struct session *session, struct storage_job *jobs) MUST_CHECK;

/* Take the next reply: its jobs end, or move to l->again.  False: the connection must be given up.
 */
bool limiter_take_reply(struct limiter *l, const struct reply *reply) MUST_CHECK;

/* End all jobs under way with @err, because the connection was lost, or they could not be sent. */
void limiter_end(struct limiter *l, enum storage_err err);

/* End the jobs whose deadline is at or before @now_ms (CLOCK_MONOTONIC). */
void limiter_answer_late(struct limiter *l, int64_t now_ms);

/* Write the call of @job alone into @out; it is not under way by that. */
void limiter_write_one(
    struct core *core, const struct session *session, struct storage_job *job, struct buffer *out);

/* The job whose reply comes next; NULL: no reply is to come, or the job was ended before. */
struct storage_job *limiter_first(const struct limiter *l);

/* Are replies still to come? */
bool limiter_awaits(const struct limiter *l);

#endif
