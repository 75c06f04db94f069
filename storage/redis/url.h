/* url.h - what the value of --redis says: one Redis, a cluster, or a master that Sentinels name.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 *     redis://[user:password@]host:port[/db]
 *     unix:/path
 *     redis-cluster://[user:password@]host[:port][,host[:port]..]
 *     redis-sentinel://[user:password@]host[:port][,host[:port]..]/master[/db]
 *                     [?sentinel_user=USER&sentinel_password=PASSWORD]
 *
 * The user may be empty.  User and password are percent-encoded; "/" and "@" must be.  An IPv6
 * address stands in brackets.  A port left out is 6379 in a cluster and 26379 of a Sentinel.  A
 * cluster has no databases.  The first pair of user and password is for the servers that hold data,
 * the second for the Sentinels; an absent second pair means that Sentinels ask for none.
 */
#ifndef STORAGE_REDIS_URL_H
#define STORAGE_REDIS_URL_H

#include <stddef.h>

#include "storage/base/compiler.h"
#include "storage/redis/address.h"

#define REDIS_SEEDS_MAX 16

enum redis_kind { REDIS_ONE, REDIS_CLUSTER, REDIS_SENTINEL };

/* As whom to log in; "" for none. */
struct redis_login {
    char user[128], password[256];
};

struct redis_url {
    enum redis_kind kind;
    struct redis_address seeds[REDIS_SEEDS_MAX]; /* of a Sentinel URL: Sentinels */
    size_t n_seeds;                              /* 1 for REDIS_ONE */
    struct redis_login login;
    int db;           /* 0 to 100000 */
    char master[128]; /* the name that the Sentinels know the master by */
    struct redis_login sentinel;
};

/* Read @url.  NULL: it is good.  Else a sentence that says what is wrong, a static text that holds
 * nothing of @url; @ret is untouched. */
const char *redis_url_parse(const char *url, struct redis_url *ret) MUST_CHECK;

#endif
