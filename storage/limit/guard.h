/* guard.h - the ingestion guard: may these events come in?
 *
 * Layer: storage, private to storage.c.  Thread-safe.
 *
 * The guard limits how many events each token, each address or each site may send.  Each of these
 * has a funnel, a rate limit (job/limit.h), which lies in Redis, so all processes share the limit.
 *
 * To ask Redis for every event would be slow.  So a process takes a lease, a small part of the
 * limit, and hands events out of it.  When a lease runs low, the guard asks for the next one ahead
 * of need.  When Redis has nothing left, the guard does not ask again for about 50 ms; requests are
 * refused meanwhile at the cost of a look-up.  A lease that lies idle is given back.
 *
 * What is in a lease is taken from Redis.  So all processes together admit no more than the limit,
 * but for the one lease that each process holds.  The pauses are drawn at random.  So no process is
 * always the first one to get the events that can be had again.
 */
#ifndef STORAGE_LIMIT_GUARD_H
#define STORAGE_LIMIT_GUARD_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct guard;

/* Sends a job: a lease to a sender, or a write that was granted to the writer.  False: the job was
 * not taken, and *ret_err says why. */
typedef bool guard_submit_fn(void *data, struct storage_job *job, enum storage_err *ret_err);

/* Make a guard.  core->config says what is limited, and how.  @submit is called from any thread,
 * also under the guard's lock.  NULL: out of memory. */
struct guard *guard_new(struct core *core, guard_submit_fn *submit, void *submit_data) MUST_CHECK;
void guard_free(struct guard *guard); /* after the writer has stopped; NULL is harmless */

/* Use another limit from now on: a funnel that passes limit_check(). */
void guard_set_limit(struct guard *guard, const struct limit *limit);

/* Take all charges, or none.  Does not wait.  GUARD_ASK: nothing was taken; guard_submit() waits
 * for Redis.  @ret_state tells how the tightest of the limits stands, unless the verdict is
 * GUARD_FAILED. */
enum guard_verdict guard_try(struct guard *guard, const struct guard_charge *charges, size_t n,
    struct limit_state *ret_state) MUST_CHECK;

/* Would even one event of @who be refused, for sure?  If so, @ret_state tells how the limit
 * stands. */
bool guard_closed(struct guard *guard, struct slice who, struct limit_state *ret_state) MUST_CHECK;

/* Tell how the limit of @who stands, without taking, asking or remembering anything. */
void guard_peek(struct guard *guard, struct slice who, struct limit_state *ret_state);

/* Take a write job whose chunk is made.  Once Redis has granted its charges, the job goes to the
 * writer.  Otherwise the job is done: with STORAGE_LIMITED, and job->u.write.guard says more, or
 * with the error for which Redis could not be asked. */
void guard_submit(struct guard *guard, struct storage_job *job);

/* Give back idle leases, and end the jobs whose deadline has come while they waited.  A sender
 * calls this on its thread after each lease that it has sent.  Returns when to call again
 * (milliseconds of CLOCK_MONOTONIC); INT64_MAX: not before the next lease. */
int64_t guard_tick(struct guard *guard, int64_t now_ms);

/* Give back all leases, before the writer is drained. */
void guard_give_back(struct guard *guard);

#endif
