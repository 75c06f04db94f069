/* guard.h - the ingestion guard: may these events come in?
 *
 * Layer: storage, private to storage.c.  Thread-safe.
 *
 * One funnel (limit.h) for each of those that are limited, in Redis, shared by all processes.  A
 * process does not ask for each event: it takes a lease, a small part of the limit, and hands it
 * out here.  When a lease runs low the next one is fetched ahead; when Redis has nothing left
 * nobody asks for a while, about 50 ms, and requests are refused here, at the cost of a look-up.
 * What is in a lease is taken from Redis, so all processes together never admit more than the limit
 * but for what they hold: one lease each.  A lease that lies idle is given back.
 *
 * The pauses are drawn at random, so that of several processes none is always the first to find
 * what has come back.
 */
#ifndef STORAGE_LIMIT_GUARD_H
#define STORAGE_LIMIT_GUARD_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct guard;

/* Where the guard sends jobs: leases, and writes that are granted.  False: not taken, and why. */
typedef bool guard_submit_fn(void *data, struct storage_job *job, enum storage_err *ret_err);

/* core->config says what is limited.  @submit is called from any thread, also under the guard's
 * lock.  NULL: out of memory. */
struct guard *guard_new(struct core *core, guard_submit_fn *submit, void *submit_data) MUST_CHECK;
void guard_free(struct guard *guard); /* after the writer has stopped; NULL is harmless */

/* Another limit from now on. */
void guard_set_limit(struct guard *guard, const struct limit *limit);

/* All charges, or none.  GUARD_ASK: nothing was taken; guard_submit waits for Redis. */
enum guard_verdict guard_try(struct guard *guard, const struct guard_charge *charges, size_t n,
    struct limit_state *ret_state);

/* Would one event be refused, for sure? */
bool guard_closed(struct guard *guard, struct slice who, struct limit_state *ret_state);

/* What is left to @who, without taking, asking or remembering anything. */
void guard_peek(struct guard *guard, struct slice who, struct limit_state *ret_state);

/* Take a write job whose rows are made: it goes to the writer once its charges are granted, or is
 * done with STORAGE_LIMITED (job->u.write.guard says more) or why the guard could not be asked. */
void guard_submit(struct guard *guard, struct storage_job *job);

/* Give back idle leases, and answer the jobs that have waited for one for as long as they may; on
 * the writer's thread.  Returns when to call again (CLOCK_MONOTONIC, ms; INT64_MAX: not before
 * something else happens there). */
int64_t guard_tick(void *guard, int64_t now_ms);

/* Give back everything, before the writer is drained. */
void guard_give_back(struct guard *guard);

#endif
