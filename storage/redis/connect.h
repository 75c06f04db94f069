/* connect.h - a connection to a server by its name, logged in, with its database selected.
 *
 * Layer: storage.  Thread-safe: no state of its own.
 *
 * What one can do with the connection is in redis.h.  The host's name is looked up by its resolver,
 * so that a name server that is silent holds nobody up beyond the deadline.
 */
#ifndef STORAGE_REDIS_CONNECT_H
#define STORAGE_REDIS_CONNECT_H

#include "storage/redis/endpoint.h"
#include "storage/redis/redis.h"
#include "storage/redis/resolvers.h"

/* Connect, log in and select the database, all by @deadline_ms (CLOCK_MONOTONIC).  @resolvers looks
 * the host up; of a unix socket there is none.  The caller owns the connection, which keeps a copy
 * of @look.  NULL: @error, of @error_n bytes, holds the reason as text. */
struct redis *redis_connect(const struct redis_endpoint *endpoint, struct resolvers *resolvers,
    const struct redis_look *look, int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

#endif
