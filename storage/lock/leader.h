/* leader.h - which process rolls up: a thread that takes the lock, and watches over it.
 *
 * Layer: storage.  The lock lies beside the data (t:{0}:lock); with --lock-redis a quorum of
 * further servers must have it too, first (redlock.h).  Taking the lock draws the fencing token, an
 * INCR of t:{0}:fence in the same script; every script of a rollup carries it, and every partition
 * refuses one that is less than the greatest it has seen (field ftok).
 *
 * - While it leads, the thread renews at a third of the lease; an answer that does not come leaves
 *   what was valid before, and it asks again until that is over.
 * - Validity is reckoned on the monotonic clock from before the lock was asked for, so a process
 * that stood still (SIGSTOP, a pause) finds that it does not lead before it writes the next time.
 * - While another process leads, it sleeps until that one's lease would be over.
 *
 * The lock saves work; what makes rollups safe is compare-and-set on the partition (rollup/pass.h).
 * Thread-safe.
 */
#ifndef STORAGE_LOCK_LEADER_H
#define STORAGE_LOCK_LEADER_H

#include "storage/core/core.h"

struct leader;

/* Start the thread.  @lock_urls: see redlock_init.  NULL: *ret_error says why (static text). */
struct leader *leader_start(struct core *core, const char *lock_urls, const char **ret_error);

/* Give the lock back, stop the thread, free. */
void leader_stop(struct leader *leader);

/* The fencing token if this process leads now; 0 if not. */
int64_t leader_token(struct leader *leader);

/* A partition has seen @token, greater than ours: draw a greater one, if we still lead.  (The
 * counter can go back with lost data while a partition's memory of it does not: in a cluster.) */
void leader_outranked(struct leader *leader, int64_t token);

/* Somebody wishes a pass (t:{0}:wish); true once for each time that it was found out. */
bool leader_take_wish(struct leader *leader);

/* What else the leader's thread does, because it never waits long for anything.  Not called any
 * more once set has replaced it; must not set another. */
struct leader_chore {
    int64_t (*look)(void *data); /* does what is due, returns when it is due again */
    void *data;
};
void leader_set_chore(struct leader *leader, struct leader_chore chore);

/* Have the chore looked at now. */
void leader_nudge(struct leader *leader);

#endif
