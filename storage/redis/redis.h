/* redis.h - one connection to Redis: bytes out, replies in, a deadline on everything.
 *
 * Layer: storage.  The only user of hiredis (0.14: no timeouts of its own, so the context is
 * non-blocking and every wait is a poll(2) with a deadline here).  A connection belongs to one
 * thread. Requests are RESP in a struct buffer; replies are built by our own object functions in an
 * arena, so a reply costs no malloc and lives until the next call that reads.
 */
#ifndef STORAGE_REDIS_REDIS_H
#define STORAGE_REDIS_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/buffer.h"
#include "storage/redis/endpoint.h"
#include "storage/redis/reply.h"

struct redis;

enum redis_status {
    REDIS_OK_STATUS,
    REDIS_LOST,    /* refused, closed, reset, or not RESP */
    REDIS_TIMEOUT, /* the deadline passed; the connection is of no use any more */
};

/* What a thread does beside while it waits for Redis, some 20 times a second.  False: it is to wait
 * no longer, as if the connection were lost. */
struct redis_look {
    bool (*look)(void *data); /* NULL: it only waits */
    void *data;
};

/* Connect, authenticate and select.  NULL on failure, with a reason in @error.  Over TCP @endpoint
 * has its resolver.  @look is copied, for all waits on the connection. */
struct redis *redis_connect(const struct redis_endpoint *endpoint, const struct redis_look *look,
    int64_t deadline_ms, char *error, size_t error_n);
void redis_close(struct redis *redis); /* NULL is harmless */
int redis_fd(const struct redis *redis);

/* Queue @b for sending.  False: out of memory, nothing queued. */
bool redis_queue(struct redis *redis, const struct buffer *b);
/* Send what the socket takes; *ret_left tells whether something is still queued. */
enum redis_status redis_send(struct redis *redis, bool *ret_left);
/* Read what the socket has. */
enum redis_status redis_receive(struct redis *redis);
/* Next complete reply of those received: *ret is NULL if there is none.  Ends the life of the
 * replies before. */
enum redis_status redis_next(struct redis *redis, const struct reply **ret);

/* Blocking, with a deadline: wait until everything queued is sent, then for one reply.
 * REDIS_TIMEOUT also where nothing comes for as long as redis_limit_silence said. */
enum redis_status redis_await(struct redis *redis, int64_t deadline_ms, const struct reply **ret);

/* The longest silence in redis_await: the connection is dead, or as good as.  At first: no limit.
 */
void redis_limit_silence(struct redis *redis, int64_t ms);

#endif
