/* limiter.h - rate limits on the writer's connection: jobs in, scripts out, replies to jobs.
 *
 * Layer: storage, private to the writer; its thread only.  Jobs that wait are merged: those of one
 * algorithm share scripts, and all go out in the same write as the flush, so a request costs no
 * round trip of its own, and no fsync of its own either.
 *
 * A script is sent once.  If the connection is lost before its reply, its jobs are answered
 * STORAGE_UNKNOWN: it may have taken from the limit or not, and sending it again could take twice.
 * A script that Redis refuses to run (LOADING, NOSCRIPT ..) did nothing, and is sent again.
 */
#ifndef STORAGE_LIMIT_LIMITER_H
#define STORAGE_LIMIT_LIMITER_H

#include "storage/core/core.h"
#include "storage/core/session.h"
#include "storage/job/queue.h"

struct limiter {
    struct core *core;
    struct sent_jobs { /* jobs[first .. first + n): replies come in this order */
        struct sent_job {
            struct storage_job *job; /* NULL: answered meanwhile */
            bool last;               /* of its script */
            bool last_of_round;      /* of what was sent at once */
        } * jobs;
        size_t first, n, capacity;
    } sent;
    struct job_queue again; /* refused without having run */
    struct job_queue done;  /* answered by Redis; their err is set */
    struct buffer out;
    size_t scripts;        /* in out */
    unsigned rounds;       /* under way */
    int64_t hold_until_ms; /* send nothing before: Redis asked for patience */
};

void limiter_init(struct limiter *l, struct core *core);
void limiter_release(struct limiter *l);

/* Encode @jobs (a list, may be NULL), and those that are to be sent again, into l->out.  False: out
 * of memory; the connection must be given up. */
bool limiter_pump(
    struct limiter *l, const struct session *session, struct storage_job *jobs, int64_t now_ms);

/* The next reply came.  False: the connection must be given up. */
bool limiter_take_reply(struct limiter *l, const struct reply *reply);

/* Answer the jobs whose replies came. */
void limiter_finish(struct limiter *l);

/* The connection is gone. */
void limiter_lost(struct limiter *l);

/* Answer the jobs under way whose time is up. */
void limiter_answer_late(struct limiter *l, int64_t now_ms);

/* Jobs under way, or to be sent again. */
size_t limiter_pending(const struct limiter *l);

/* Earliest deadline among them, INT64_MAX if there is none. */
int64_t limiter_deadline_ms(const struct limiter *l);

#endif
