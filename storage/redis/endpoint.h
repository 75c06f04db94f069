/* endpoint.h - a server to connect to, with its address, its login and its database.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_REDIS_ENDPOINT_H
#define STORAGE_REDIS_ENDPOINT_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/redis/url.h"

struct redis_endpoint {
    struct redis_address address;
    struct redis_login login;
    int db; /* the number of the database; 0 for a Sentinel */
};

/* Read @url of one server, redis:// or unix: (url.h).  False, with @ret untouched: @url is not such
 * a URL. */
bool redis_endpoint_parse(const char *url, struct redis_endpoint *ret) MUST_CHECK;

/* The server at @address, with the login that @url has for servers that hold data, and with the
 * database of @url. */
struct redis_endpoint redis_endpoint_of_server(
    const struct redis_url *url, const struct redis_address *address);

/* The Sentinel at @address, with the login that @url has for Sentinels. */
struct redis_endpoint redis_endpoint_of_sentinel(
    const struct redis_url *url, const struct redis_address *address);

#endif
