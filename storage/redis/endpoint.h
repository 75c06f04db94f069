/* endpoint.h - where Redis is, and as whom to log in: what a Redis URL says.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_REDIS_ENDPOINT_H
#define STORAGE_REDIS_ENDPOINT_H

#include <stdbool.h>

#include "storage/base/compiler.h"

struct redis_endpoint {
    char unix_path[108]; /* "" for TCP */
    char host[256];
    int port;
    char user[128], password[256]; /* "" for none */
    int db;
    struct resolver *resolver; /* of the host: set and owned by the code that connects; else NULL */
};

/* Read a URL of one of these forms:
 *
 *     redis://host:port
 *     redis://user:password@host:port/db
 *     unix:path
 *
 * The user may be empty, and "user:password@" and "/db" may be left out.  An IPv6 address stands in
 * brackets.  db is 0 to 100000.  Percent-escapes in user and password are decoded.  False, with
 * @ret untouched: @url is not such a URL. */
bool redis_endpoint_parse(const char *url, struct redis_endpoint *ret) MUST_CHECK;

#endif
