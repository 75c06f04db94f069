/* asks.h - commands about several partitions that go out together, and their replies in order.
 *
 * Layer: storage.  Not thread-safe: one owner.
 *
 * Where one server has all partitions the commands go over the session's connection, in order.
 * Where several servers share the partitions each command goes to the server of its partition, by
 * the session's dispatcher.  A command that a server does not carry out goes where it belongs
 * (dispatcher.h).  Then commands about different partitions have no order among them.
 */
#ifndef STORAGE_SESSION_ASKS_H
#define STORAGE_SESSION_ASKS_H

#include "storage/redis/ask.h"
#include "storage/session/dispatcher.h"

struct asks {
    struct session *session; /* connected, or with a dispatcher */
    struct buffer out;       /* owned until asks_run(), where one server has all partitions */
    size_t n;                /* commands begun */
    bool failed;             /* out of memory: asks_run() will fail */
    bool starved;            /* the last asks_run() had no memory for its commands */
};

/* Begin with no commands.  @session outlives the asks.  Once a command was begun asks_run() must
 * follow. */
static inline struct asks asks_to(struct session *session)
{
    return (struct asks){.session = session};
}

/* Begin a command about @partition: the caller appends it, whole (resp.h), to the buffer that is
 * returned, before the next call. */
struct buffer *asks_begin(struct asks *asks, unsigned partition);

/* Begin a command about the key @name of @partition: the caller appends the @n words that come
 * behind the key to the buffer that is returned, before the next call. */
struct buffer *asks_command(struct asks *asks, const struct core *core, unsigned partition,
    const char *command, const char *name, size_t n);

/* Send all commands, and hand their replies to @take as redis_ask_all() does, in the order of the
 * commands, until @deadline_ms (CLOCK_MONOTONIC).  Afterwards the asks are empty. */
enum redis_status asks_run(
    struct asks *asks, int64_t deadline_ms, redis_take_fn *take, void *data) MUST_CHECK;

#endif
