/* lease.h - leases: what the guard has taken from Redis and not handed out yet.
 *
 * Layer: storage, private to guard.c.  A lease is a small part of the limit, asked for as a job of
 * the writer; one of a funnel is under way at most.  Fetched ahead when it runs low, given back
 * when it lies idle (lease_tick, guard_give_back), lost when it cannot be sent: then less is
 * admitted, never more.
 *
 * Ownership: the job is part of its funnel (limit/funnel.h).  Thread safety: under guard->lock;
 * answers come on the writer's thread.
 */
#ifndef STORAGE_LIMIT_LEASE_H
#define STORAGE_LIMIT_LEASE_H

#include "storage/limit/funnel.h"

/* How large a lease of @limit is, and how long the pauses are. */
void lease_set_limit(struct guard *guard, const struct limit *limit);

/* Ask for at least @need, up to a whole lease; negative: give back.  False: it cannot be sent. */
bool lease_ask(struct guard *guard, struct funnel *funnel, int64_t need, int64_t deadline_ms,
    enum storage_err *ret_err);

/* @n more are left; negative: were handed out. */
void lease_add(struct guard *guard, struct funnel *funnel, int64_t n);

/* @lease was answered. */
void lease_take(struct guard *guard, struct funnel *funnel, const struct limit_job *lease);

/* Half of the lease is gone: fetch the next one, so that nobody waits for it. */
void lease_prefetch(struct guard *guard, struct funnel *funnel, int64_t now_us);

/* Give back what is left.  What cannot be sent is lost: less is admitted, never more. */
void lease_give_back(struct guard *guard, struct funnel *funnel, int64_t now_us);

/* Give back idle ones; without the lock.  Returns when to call again, like guard_tick. */
int64_t lease_tick(struct guard *guard, int64_t now_ms);

#endif
