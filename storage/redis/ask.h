/* ask.h - send commands to Redis and wait for their replies, for a thread that may wait.
 *
 * Layer: storage.  A connection belongs to one thread.
 */
#ifndef STORAGE_REDIS_ASK_H
#define STORAGE_REDIS_ASK_H

#include "storage/base/compiler.h"
#include "storage/redis/redis.h"

/* Send the one command in @out, which is emptied, and wait for its reply.  *ret lives until the
 * next question.  Anything but REDIS_OK_STATUS (REDIS_LOST also where memory is short): the
 * connection must be closed. */
enum redis_status redis_ask(struct redis *redis, struct buffer *out, int64_t deadline_ms,
    const struct reply **ret) MUST_CHECK;

/* Takes the reply to command @i, which lives until this function returns.  False: it is none that
 * one can go on with. */
typedef bool redis_take_fn(void *data, size_t i, const struct reply *reply);

/* Send the @n commands in @out, which is emptied, and hand their replies to @take in order, by
 * @deadline_ms all of them.  Anything but REDIS_OK_STATUS (REDIS_LOST also where @take said no, or
 * memory is short): the connection must be closed, as replies may be left on it. */
enum redis_status redis_ask_all(struct redis *redis, struct buffer *out, size_t n,
    int64_t deadline_ms, redis_take_fn *take, void *data) MUST_CHECK;

#endif
