/* connect.h - connects to a server by its name, logs in and selects the database.
 *
 * Layer: storage.  Thread-safe: no state of its own.
 *
 * redis.h has the functions of a connection.  A resolver looks the host's name up, so a silent name
 * server holds no caller up beyond the deadline.
 */
#ifndef STORAGE_REDIS_CONNECT_H
#define STORAGE_REDIS_CONNECT_H

#include "storage/redis/endpoint.h"
#include "storage/redis/redis.h"
#include "storage/redis/resolvers.h"

/* Connect, log in and select the database, all by @deadline_ms (CLOCK_MONOTONIC).  @resolvers looks
 * the host up; a unix socket has no host.  The caller owns the connection, which keeps a copy of
 * @look.  NULL: @error, of @error_n bytes, holds the reason as text. */
struct redis *redis_connect(const struct redis_endpoint *endpoint, struct resolvers *resolvers,
    const struct redis_look *look, int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

#endif
