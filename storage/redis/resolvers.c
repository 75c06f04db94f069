#include "storage/redis/resolvers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "storage/base/cond.h"

struct named_resolver {
    struct named_resolver *next;
    struct resolver *resolver;
    char host[];
};

void resolvers_init(struct resolvers *resolvers)
{
    mutex_init(&resolvers->lock);
    resolvers->first = NULL;
}

void resolvers_release(struct resolvers *resolvers)
{
    while (resolvers->first != NULL) {
        struct named_resolver *named = resolvers->first;
        resolvers->first = named->next;
        resolver_free(named->resolver);
        free(named);
    }
    pthread_mutex_destroy(&resolvers->lock);
}

/* Add a resolver of @host.  Called with the lock held.  NULL: out of memory. */
static struct named_resolver *add(struct resolvers *resolvers, const char *host)
{
    size_t n = strlen(host) + 1;
    struct named_resolver *named = malloc(sizeof(*named) + n);
    struct resolver *resolver = named == NULL ? NULL : resolver_new(host, NULL);
    if (resolver == NULL) {
        free(named);
        return NULL;
    }
    *named = (struct named_resolver){.next = resolvers->first, .resolver = resolver};
    memcpy(named->host, host, n);
    resolvers->first = named;
    return named;
}

struct resolver *resolvers_get(struct resolvers *resolvers, const char *host)
{
    pthread_mutex_lock(&resolvers->lock);
    struct named_resolver *named = resolvers->first;
    while (named != NULL && strcasecmp(named->host, host) != 0) {
        named = named->next;
    }
    named = named == NULL ? add(resolvers, host) : named;
    pthread_mutex_unlock(&resolvers->lock);
    return named == NULL ? NULL : named->resolver;
}
