/* resolvers.h - the resolvers of all hosts that have servers, one for each host.
 *
 * Layer: storage.  Thread-safe.
 *
 * A cluster or a Sentinel names servers while the process runs, and several threads connect to the
 * same server.  The threads share one resolver, so a name is looked up once for all of them.
 */
#ifndef STORAGE_REDIS_RESOLVERS_H
#define STORAGE_REDIS_RESOLVERS_H

#include <pthread.h>

#include "storage/redis/resolver.h"

struct named_resolver;

struct resolvers {
    pthread_mutex_t lock; /* a leaf; guards `first` and the list */
    struct named_resolver *first;
};

void resolvers_init(struct resolvers *resolvers);

/* Free all resolvers, when no thread uses one any more. */
void resolvers_release(struct resolvers *resolvers);

/* The resolver of @host, which is made if the host is new.  Good until resolvers_release(): a host
 * costs a few hundred bytes, so no resolver is freed before.  NULL: out of memory. */
struct resolver *resolvers_get(struct resolvers *resolvers, const char *host) MUST_CHECK;

#endif
