/* url.h - reads the value of --redis: one Redis, a cluster, or a master that Sentinels name.
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
 * address stands in brackets.  A port that is left out is 6379 for a node of a cluster and 26379
 * for a Sentinel.  A cluster has no databases.  The first pair of user and password is for the
 * servers that hold data, the second for the Sentinels; without the second pair tallyd does not log
 * in to Sentinels.
 */
#ifndef STORAGE_REDIS_URL_H
#define STORAGE_REDIS_URL_H

#include <stddef.h>

#include "storage/base/compiler.h"
#include "storage/redis/address.h"

#define REDIS_SEEDS_MAX 16

enum redis_kind { REDIS_ONE, REDIS_CLUSTER, REDIS_SENTINEL };

/* The user and password of a login; "" stands for none. */
struct redis_login {
    char user[128], password[256];
};

struct redis_url {
    enum redis_kind kind;
    struct redis_address seeds[REDIS_SEEDS_MAX]; /* of REDIS_SENTINEL: the Sentinels */
    size_t n_seeds;                              /* 1 for REDIS_ONE */
    struct redis_login login;                    /* the login at servers that hold data */
    int db;                                      /* 0 to 100000 */
    char master[128];                            /* the master's name at the Sentinels; else "" */
    struct redis_login sentinel;                 /* the login at the Sentinels */
};

/* Read @url.  NULL: it is good.  Else a sentence that says what is wrong, a static text that holds
 * nothing of @url; @ret is untouched. */
const char *redis_url_parse(const char *url, struct redis_url *ret) MUST_CHECK;

#endif
