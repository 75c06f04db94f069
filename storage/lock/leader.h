/* leader.h - a thread that takes and keeps the lock by which one of several processes rolls up.
 *
 * Layer: storage.  Thread-safe.
 *
 * Several processes may serve the same data; one of them leads, and only that one rolls up.  The
 * lock lies beside the data (t:{0}:lock).  With --lock-redis a quorum of further servers must have
 * the lock first (redlock.h).  Taking the lock draws a fencing token, an INCR of t:{0}:fence in the
 * same script.  Every script of a rollup carries the token, and every partition refuses a token
 * that is less than the greatest it has seen (field ftok of t:{p}:pass).
 *
 * - While this process leads, the thread renews the lock at a third of the lease.  If no answer
 *   comes, the lease before stays valid to its end, and the thread asks again until then.
 * - Validity is reckoned on the monotonic clock, from before the lock was asked for.  So a process
 *   that stood still (SIGSTOP, a pause) finds that it does not lead before it writes the next time.
 * - While another process leads, the thread sleeps until the lease of that process would be over.
 *
 * The lock saves work.  What makes rollups safe is compare-and-set on the partition
 * (rollup/pass.h).
 *
 * LOCK ORDER: while a lock is held, only a lock that is indented under it may be taken.
 *
 *   leader.chore_lock       while the chore looks; never while a job is answered
 *     rollup_jobs.lock      (rollup/jobs.h)
 *   leader.lock             nothing is taken under it
 */
#ifndef STORAGE_LOCK_LEADER_H
#define STORAGE_LOCK_LEADER_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct leader;

/* Start the thread.  @lock_urls: see redlock_init().  NULL: *ret_error says why, a static text.
 * Otherwise *ret_error is untouched. */
struct leader *leader_start(
    struct core *core, const char *lock_urls, const char **ret_error) MUST_CHECK;

/* Give the lock back, stop the thread, free. */
void leader_stop(struct leader *leader);

/* The fencing token if this process leads now; 0 if not. */
int64_t leader_token(struct leader *leader) MUST_CHECK;

/* Have a token greater than @token drawn, if this process still leads with one less than @token.
 * That is needed when a partition has seen @token: in a cluster the counter can go back with lost
 * data while the partition does not.  Or a command under our own token may come late, and must find
 * a greater one. */
void leader_outranked(struct leader *leader, int64_t token);

/* Has another process asked for a pass (t:{0}:wish)?  True once for each time that a renewal found
 * the wish. */
bool leader_take_wish(struct leader *leader) MUST_CHECK;

/* A chore that the leader's thread does beside its work, because it never waits long for anything:
 * it ends jobs whose deadline has passed with STORAGE_UNKNOWN. */
struct leader_chore {
    /* Take out the jobs that are late now, as a list in *ret_late.  Returns when to look again
     * (milliseconds of CLOCK_MONOTONIC), INT64_MAX: not before a nudge.  Called under a lock, so it
     * must not answer a job. */
    int64_t (*take_late)(void *data, struct storage_job **ret_late);
    void *data;
};

/* Set the chore.  When this returns, the chore before is not called any more. */
void leader_set_chore(struct leader *leader, struct leader_chore chore);

/* Have the chore done now. */
void leader_nudge(struct leader *leader);

#endif
