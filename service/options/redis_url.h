/* redis_url.h - check the value of --redis before a connection is tried, and mask its password.
 *
 * Layer: service, pure.  Thread-safe.  storage/redis/url.h says what a URL holds.
 *
 *     ""                                       the embedded Redis
 *     redis://[user:password@]host:port[/db]   user may be empty; user and password percent-encoded
 *     unix:/path                               at most 107 bytes of path
 *
 *     redis-sentinel://..                      the master that Sentinels name
 *     redis-cluster://..                       the nodes of a cluster
 */
#ifndef SERVICE_OPTIONS_REDIS_URL_H
#define SERVICE_OPTIONS_REDIS_URL_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"

/* NULL: @url has one of these forms.  Else what is allowed, a static text that holds no @url. */
const char *redis_url_check(const char *url) MUST_CHECK;

/* The same for --lock-redis, a list of single servers' URLs with commas between.  A comma in a
 * password is %2C.  Each URL stands once.  The list has 1 URL, or 3 to 9: a majority of two servers
 * is both. */
const char *redis_url_list_check(const char *urls) MUST_CHECK;

/* How many partitions are good for the Redis of @url, which redis_url_check() has passed: the data
 * is cut into so many at the first start.  tests/bench/README.md says what partitions cost. */
int64_t redis_url_partitions(const char *url);

/* How many replicas must acknowledge a request at the Redis of @url: 1 where a replica may take
 * over, else 0. */
int64_t redis_url_ack_replicas(const char *url);

/* Write @url, or a list, to @text, with "***" for everything that may be a password.  @text has
 * @room > 0 bytes; the result is cut to fit and ends with a NUL.  A malformed @url is masked, too,
 * because error texts show it. */
void redis_url_mask(const char *url, char *text, size_t room);

#endif
