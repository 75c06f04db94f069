/* redis.h - one connection to Redis: bytes out, replies in, a deadline on everything.
 *
 * Layer: storage.  Not thread-safe: a connection belongs to one thread.
 *
 * The caller writes commands into a buffer (resp.h) and queues the buffer.  Many commands may be
 * under way; replies come in the order of the commands.  There are two ways to get the replies:
 *
 *     blocking       redis_await() sends everything and waits for one reply
 *     non-blocking   the caller polls redis_fd() itself and calls redis_send(), redis_receive()
 *                    and redis_next()
 *
 * A reply lives in an arena of the connection, so a reply costs no malloc.  The reply lives until
 * the next call of redis_next(), redis_await() or redis_await_all().
 *
 * No other file of storage uses hiredis.  hiredis 0.14 has no timeouts of its own.  So its context
 * is non-blocking, and every wait is a poll(2) with a deadline.  Deadlines are milliseconds of
 * CLOCK_MONOTONIC.
 */
#ifndef STORAGE_REDIS_REDIS_H
#define STORAGE_REDIS_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/redis/reply.h"

struct redis;

/* After any other status than REDIS_OK_STATUS the connection is of no use and must be closed. */
enum redis_status {
    REDIS_OK_STATUS,
    REDIS_LOST,    /* closed, reset or given up, no memory, or the bytes are not RESP */
    REDIS_TIMEOUT, /* the deadline passed */
};

/* Say why there is no reply, in a static text.  @status is not REDIS_OK_STATUS. */
const char *redis_status_text(enum redis_status status);

/* Milliseconds between two calls of look().  look() answers late requests, so they are late by no
 * more. */
#define REDIS_LOOK_MS 5

/* What a thread does some 200 times a second while it waits for Redis.  look() returns false when
 * the thread is to wait no longer; the wait then ends with REDIS_LOST. */
struct redis_look {
    bool (*look)(void *data); /* NULL: the thread only waits */
    void *data;
    int64_t silence_ms; /* silence after which the connection is taken for dead; 0: never */
};

/* The usual silence_ms: a thread that waits for a reply has no sooner sign of a dead server. */
#define REDIS_SILENCE_MS 5000

/* Connect to the server at the numeric @address and @port; port 0: to the unix socket whose path is
 * @address.  The connection is not logged in yet: see connect.h.  The caller owns the connection
 * and closes it with redis_close().  @look is copied and is used by all waits on the connection.
 * NULL: @error, of @error_n bytes, holds the reason as text. */
struct redis *redis_open(const char *address, int port, const struct redis_look *look,
    int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

/* Close the connection, and free it.  NULL is harmless. */
void redis_close(struct redis *redis);

/* Close a connection that failed.  The kernel gives up what is not delivered yet.  Otherwise the
 * kernel goes on trying for minutes, and commands may arrive when nobody expects them any more. */
void redis_abandon(struct redis *redis);

/* The socket, for poll(2).  The connection owns it. */
int redis_fd(const struct redis *redis);

/* Queue a copy of the commands in @b for sending.  False, with nothing queued: memory is short, or
 * was when @b was written. */
bool redis_queue(struct redis *redis, const struct buffer *b) MUST_CHECK;

/* Send as much as the socket takes.  *ret_left tells whether something is still queued.  A caller
 * that awaits a reply next may ignore the status: redis_await() meets the failure, or sends. */
enum redis_status redis_send(struct redis *redis, bool *ret_left);

/* Read what the socket has.  Does not wait. */
enum redis_status redis_receive(struct redis *redis) MUST_CHECK;

/* Take the next reply of those that were received.  *ret is NULL if none is complete. */
enum redis_status redis_next(struct redis *redis, const struct reply **ret) MUST_CHECK;

/* Send everything that is queued and wait for one reply.  Returns REDIS_TIMEOUT at the deadline, or
 * earlier after silence (struct redis_look). */
enum redis_status redis_await(
    struct redis *redis, int64_t deadline_ms, const struct reply **ret) MUST_CHECK;

/* Send everything that is queued and wait for @n replies, at least one, each by @deadline_ms.  *ret
 * is an array of the replies, in which errors are elements, too. */
enum redis_status redis_await_all(
    struct redis *redis, size_t n, int64_t deadline_ms, const struct reply **ret) MUST_CHECK;

#endif
