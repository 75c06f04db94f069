/* ask.h - send commands to Redis and wait for their replies, for a thread that may wait.
 *
 * Layer: storage.  Not thread-safe: a connection belongs to one thread.
 *
 * Most threads of storage ask Redis one thing and have nothing else to do until the reply comes.
 * Commands are written into a buffer (resp.h); deadlines are milliseconds of CLOCK_MONOTONIC.
 */
#ifndef STORAGE_REDIS_ASK_H
#define STORAGE_REDIS_ASK_H

#include "storage/base/compiler.h"
#include "storage/redis/redis.h"

/* Send the one command in @out, empty @out, and wait for the reply.  *ret lives until the
 * connection is asked again.  On any other status than REDIS_OK_STATUS the connection must be
 * closed.  REDIS_LOST also means that memory is short. */
enum redis_status redis_ask(struct redis *redis, struct buffer *out, int64_t deadline_ms,
    const struct reply **ret) MUST_CHECK;

/* Takes the reply to command @i.  The reply lives until this function returns.  False: the caller
 * cannot go on with this reply. */
typedef bool redis_take_fn(void *data, size_t i, const struct reply *reply);

/* Send the @n commands in @out, empty @out, and hand the replies to @take in their order, all by
 * @deadline_ms.  On any other status than REDIS_OK_STATUS the connection must be closed, because
 * replies may be left on it.  REDIS_LOST also means that @take has returned false, or that memory
 * is short. */
enum redis_status redis_ask_all(struct redis *redis, struct buffer *out, size_t n,
    int64_t deadline_ms, redis_take_fn *take, void *data) MUST_CHECK;

#endif
