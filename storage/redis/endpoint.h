/* endpoint.h - where Redis is, from a URL.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_REDIS_ENDPOINT_H
#define STORAGE_REDIS_ENDPOINT_H

#include <stdbool.h>

/* Where Redis is; made from a URL. */
struct redis_endpoint {
    char unix_path[108]; /* "" for TCP */
    char host[256];
    int port;
    char user[128], password[256]; /* "" for none */
    int db;
    struct resolver *resolver; /* of the host; whoever connects sets it, and owns it.  NULL here */
};

/* redis://[user:password@]host:port[/db] or unix:path; user may be empty, an IPv6 address stands in
 * brackets, database 0 to 100000.  False: not such a URL.  Percent-escapes in user and password are
 * decoded. */
bool redis_endpoint_parse(const char *url, struct redis_endpoint *ret);

#endif
