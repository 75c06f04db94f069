/* redlock.h - one lock over several independent Redis servers, and the rules of time for any lock.
 *
 * Layer: storage; belongs to one thread.  The rules are pure.
 * Source: redis.io, "Distributed Locks with Redis", the Redlock algorithm.
 *
 *  - The same key and token are set on all servers, which are asked at once.  A server that does
 *    not answer within REDLOCK_SERVER_MS, far below the lease, counts as not locked.
 *  - The lock is ours if a quorum, n/2 + 1 servers, has it and validity is left.  Validity is the
 *    lease less the time elapsed less the drift, by the monotonic clock from before the first
 *    server was asked.  The drift is 1 % of the lease and 2 ms.
 *  - Else it is given back on all servers, also on those that did not answer (their yes may be
 *    late), and tried again after a random time.
 *  - It is prolonged by the same rule: a quorum must have prolonged it, and validity counts from
 *    before they were asked.  Less than a quorum leaves what was valid before, and we ask again
 *    until that is over.  If so many have lost it that no quorum is possible, it is lost at once.
 *  - A server that lost its data must stay away for a lease (or run with appendfsync always), else
 *    two may have a quorum.  A lock saves work here; what makes rollups safe is compare-and-set and
 *    the fencing token (rollup/pass.h).
 */
#ifndef STORAGE_LOCK_REDLOCK_H
#define STORAGE_LOCK_REDLOCK_H

#include "storage/job/config.h"
#include "storage/lock/lock.h"

#define REDLOCK_SERVER_MS 100

/* ---- rules ---- */

/* Until when a lease that was asked for at @asked_ms holds. */
int64_t lock_until_ms(int64_t asked_ms, int64_t lease_ms);

/* How many of @n servers are most of them. */
unsigned redlock_quorum(unsigned n);

/* What the answers of @n servers come to: @yes have it for us, @no surely not. */
enum lock_answer redlock_judge(unsigned n, unsigned yes, unsigned no);

/* In how many ms a quorum may be free.  @left_ms, of @n servers in any order: how long each is
 * another's. */
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

/* Take @urls apart: URLs of redis/endpoint.h with commas between; "" is none.  False: not such a
 * list.  @resolvers outlives it. */
bool redlock_init(
    struct redlock *redlock, const char *urls, struct resolvers *resolvers) MUST_CHECK;
void redlock_close(struct redlock *redlock);

/* Take the lock on a quorum; else it is given back everywhere.  The caller computes until when the
 * lock holds, from before it called.  *ret_left_ms: where the lock is not ours, how long until
 * enough leases of others are over. */
enum lock_answer redlock_acquire(struct redlock *redlock, int64_t *ret_left_ms) MUST_CHECK;
enum lock_answer redlock_renew(struct redlock *redlock) MUST_CHECK;
void redlock_release(struct redlock *redlock);

/* Have so many servers answered their last question that a quorum is possible? */
bool redlock_can_lock(const struct redlock *redlock) MUST_CHECK;

/* Into @text, of @size bytes: the servers that have not, each with the reason, cut to fit. */
void redlock_say_away(const struct redlock *redlock, char *text, size_t size);

#endif
