/* lease.h - leases: what the guard has taken from Redis and not handed out yet.
 *
 * Layer: storage, private to guard.c.  Not thread-safe: guard->lock guards it, and answers come on
 * a sender's thread.
 *
 * A lease is a small part of a limit (guard.h).  The job that asks a sender for a lease is part of
 * the funnel (funnel.h).  So at most one such job of a funnel is under way.
 *
 *     a lease runs low              the next lease is asked for ahead of need
 *     a lease lies idle             the lease is given back
 *     giving it back fails          it is lost: less is admitted than the limit allows, never more
 */
#ifndef STORAGE_LIMIT_LEASE_H
#define STORAGE_LIMIT_LEASE_H

#include "storage/limit/funnel.h"

/* Set the limit, and with it the size of a lease and the length of a pause. */
void lease_set_limit(struct guard *guard, const struct limit *limit);

/* Ask for a lease, of at least @need events where @need is more than a lease.  A negative @need
 * gives -@need events back.  No job of @funnel is under way.  False: the job was not taken, and
 * *ret_err says why; a caller that gives back or asks ahead may ignore that. */
bool lease_ask(struct guard *guard, struct funnel *funnel, int64_t need, int64_t deadline_ms,
    enum storage_err *ret_err);

/* Add @n to the events that are left of the lease; @n is negative for events that are handed out.
 */
void lease_add(struct guard *guard, struct funnel *funnel, int64_t n);

/* Take the answer to @lease: Redis has granted so many events, and says how the limit stands. */
void lease_take(struct guard *guard, struct funnel *funnel, const struct limit_job *lease);

/* Ask for the next lease if half of this one is gone, so that no request waits for it. */
void lease_prefetch(struct guard *guard, struct funnel *funnel, int64_t now_us);

/* Give back what is left of the lease. */
void lease_give_back(struct guard *guard, struct funnel *funnel, int64_t now_us);

/* Give back the idle leases of all funnels, and forget some funnels that are idle for long.  Takes
 * the lock itself.  Returns when to call again, as guard_tick() does. */
int64_t lease_tick(struct guard *guard, int64_t now_ms);

#endif
