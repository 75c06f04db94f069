/* senders.h - threads that send rate limits to the servers of their keys.
 *
 * Layer: storage.  Thread-safe.
 *
 * Each limit lies on the server of its key.  Where one server has all partitions there is one
 * thread.  In a cluster there are 16, and a job goes to one of them by its server: so a server that
 * is away or slow holds up the limits of its own keys.
 *
 * A thread sends all jobs that wait, and takes their replies before it sends the next ones.  So a
 * job that comes alone is sent at once, and many that come together share a round trip.
 *
 *     MOVED, TRYAGAIN, LOADING..   nothing was done: sent again in 20 ms, wherever the key is then
 *     ASK                          the script goes to the named server, behind ASKING
 *     no reply, or none in time    STORAGE_UNKNOWN: a second copy could take twice
 *     no server for a second       STORAGE_DOWN, at once; the detail names the server
 */
#ifndef STORAGE_LIMIT_SENDERS_H
#define STORAGE_LIMIT_SENDERS_H

#include "storage/base/compiler.h"
#include "storage/core/core.h"

struct guard;
struct limit_senders;

/* Start the threads.  They call guard_tick() for @guard, which outlives them; @guard NULL: there is
 * no guard.  Returns NULL without memory or threads. */
struct limit_senders *limit_senders_start(struct core *core, struct guard *guard) MUST_CHECK;

/* Take a STORAGE_LIMIT or STORAGE_LIMIT_RESET.  False: the job was not taken, and *ret_err says
 * why. */
bool limit_senders_submit(
    struct limit_senders *senders, struct storage_job *job, enum storage_err *ret_err);

/* Take no more jobs; carry out those that were taken until @deadline_ms (CLOCK_MONOTONIC), and end
 * the rest with an error. */
void limit_senders_drain(struct limit_senders *senders, int64_t deadline_ms);

/* End the threads and free; no job may be under way any more. */
void limit_senders_stop(struct limit_senders *senders);

#endif
