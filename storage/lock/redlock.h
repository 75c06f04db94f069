/* redlock.h - one lock over several independent Redis servers, and the rules of time for any lock.
 *
 * Layer: storage.  A struct redlock belongs to one thread.  The rules are pure.
 * Source: redis.io, "Distributed Locks with Redis", the Redlock algorithm.
 *
 *  - The same key and token are set on all servers, which are asked at once.  A server that does
 *    not answer within REDLOCK_SERVER_MS, far below the lease, counts as not locked.
 *  - The lock is ours if a quorum, n/2 + 1 servers, has it and validity is left.  Validity is the
 *    lease less the time elapsed less the drift, by the monotonic clock from before the first
 *    server was asked.  The drift is 1 % of the lease and 2 ms.
 *  - Otherwise the lock is given back on all servers, also on those that did not answer (their yes
 *    may be late), and tried again after a random time.
 *  - The lock is prolonged by the same rule: a quorum must have prolonged it, and validity counts
 *    from before the servers were asked.  Less than a quorum leaves what was valid before, and we
 *    ask again until that is over.  If so many servers have lost the lock that no quorum is
 *    possible, it is lost at once.
 *  - A server that lost its data must stay away for a lease (or run with appendfsync always), or
 *    two processes may have a quorum.  The lock only saves work; what makes rollups safe is
 *    compare-and-set and the fencing token (rollup/pass.h).
 */
#ifndef STORAGE_LOCK_REDLOCK_H
#define STORAGE_LOCK_REDLOCK_H

#include "storage/job/config.h"
#include "storage/lock/lock.h"

#define REDLOCK_SERVER_MS 100

/* ---- rules ---- */

/* Until when a lease holds that was asked for at @asked_ms (CLOCK_MONOTONIC). */
int64_t lock_until_ms(int64_t asked_ms, int64_t lease_ms);

/* How many of @n servers are a majority. */
unsigned redlock_quorum(unsigned n);

/* What the answers of @n servers come to: on @yes of them the lock is ours, on @no of them it is
 * surely not ours. */
enum lock_answer redlock_judge(unsigned n, unsigned yes, unsigned no);

/* In how many ms a quorum may be free.  @left_ms, of @n servers in any order: how long another
 * process has the lock on each. */
int64_t redlock_left_ms(unsigned n, const int64_t *left_ms);

/* How long to wait before the next attempt, random (@random: any number): 200 to 400 ms. */
int64_t lock_retry_ms(uint32_t random);

/* ---- servers ---- */

struct redlock {
    struct lock_server servers[LOCK_SERVERS_MAX];
    unsigned n; /* 0: every question is answered LOCK_MINE */
    struct resolvers *resolvers;
    struct lock lock;
};

/* Take @urls apart: URLs of redis/endpoint.h with commas between; "" is no server.  False: @urls is
 * no such list.  @resolvers outlives @redlock. */
bool redlock_init(
    struct redlock *redlock, const char *urls, struct resolvers *resolvers) MUST_CHECK;
void redlock_close(struct redlock *redlock);

/* Take the lock on a quorum, or give it back everywhere.  The caller computes until when the lock
 * holds, by the time before the call.  *ret_left_ms: if the lock is not ours, how long until enough
 * leases of others are over. */
enum lock_answer redlock_acquire(struct redlock *redlock, int64_t *ret_left_ms) MUST_CHECK;
enum lock_answer redlock_renew(struct redlock *redlock) MUST_CHECK;
void redlock_release(struct redlock *redlock);

/* Have so many servers answered their last question that a quorum is possible? */
bool redlock_can_lock(const struct redlock *redlock) MUST_CHECK;

/* Write the servers that have not answered to @text, of @size bytes, each with the reason, cut to
 * fit. */
void redlock_say_away(const struct redlock *redlock, char *text, size_t size);

#endif
