/* resolvers.h - a resolver for each host that servers are found at.
 *
 * Layer: storage.  Thread-safe.
 *
 * A cluster or a Sentinel names servers while the process runs, and several threads connect to the
 * same one.  They share its resolver, so a name is looked up once for all of them.
 */
#ifndef STORAGE_REDIS_RESOLVERS_H
#define STORAGE_REDIS_RESOLVERS_H

#include <pthread.h>

#include "storage/redis/resolver.h"

struct named_resolver;

struct resolvers {
    pthread_mutex_t lock; /* a leaf; guards all */
    struct named_resolver *first;
};

void resolvers_init(struct resolvers *resolvers);

/* Free all, when no thread uses one any more. */
void resolvers_release(struct resolvers *resolvers);

/* The resolver of @host, made if it is new; good until resolvers_release().  NULL: out of memory.
 * None is ever given up: a few hundred bytes for each host that there ever was. */
struct resolver *resolvers_get(struct resolvers *resolvers, const char *host) MUST_CHECK;

#endif
