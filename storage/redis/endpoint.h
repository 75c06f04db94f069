/* endpoint.h - one server to connect to: where it is, and as whom to log in.
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
    int db;
};

/* Read a URL of one server, redis:// or unix: (url.h).  False, with @ret untouched: @url is not
 * such a URL. */
bool redis_endpoint_parse(const char *url, struct redis_endpoint *ret) MUST_CHECK;

/* The server at @address, with the login that @url has for servers that hold data, and its
 * database; or the Sentinel at @address, with the login for Sentinels. */
struct redis_endpoint redis_endpoint_of_server(
    const struct redis_url *url, const struct redis_address *address);
struct redis_endpoint redis_endpoint_of_sentinel(
    const struct redis_url *url, const struct redis_address *address);

#endif
