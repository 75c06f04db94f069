/* parts.h - the parts of a running tallyd: Redis, storage, HTTP.
 *
 * Layer: service.  Put together in this order, each needing those before it, and taken apart in
 * reverse: stop accepting, finish what is in flight, then end what it went to.
 *
 * Ownership: serve.c has the struct and fills its first half; the second is what service_start()
 * makes and service_stop() frees.  Thread safety: the main thread; it forks Redis, and a child's
 * death signal is bound to its forker.
 */
#ifndef SERVICE_PARTS_H
#define SERVICE_PARTS_H

#include "handlers/http/app.h"
#include "service/http/server.h"
#include "service/live.h"
#include "service/log/log.h"
#include "service/ops/ops.h"
#include "service/options/listen.h"
#include "service/options/options.h"
#include "service/redis/redis_child.h"
#include "service/redis/redis_news.h"
#include "service/tokens/tokens.h"

struct service {
    int argc; /* to read the options again */
    char **argv;
    struct options options; /* of the start */
    struct listen_address listen;
    struct tokens *tokens; /* NULL: nobody needs one */
    struct limit guard_limit;
    enum guard_by guard_by;
    struct logger *logger;
    struct redis_news news;

    struct redis_child *child; /* NULL: a Redis of one's own */
    const char *redis_url;
    struct app app; /* what all handlers share; requests see a copy of it, which `live` makes */
    struct app_stats stats;
    struct ops ops;
    struct write_probe probe;
    struct live *live; /* what requests see of the options */
    struct route *routes;
    size_t n_routes;
    struct http_server *server;
};

/* 0, or the exit status; what was made before that is left for service_stop(). */
int service_start(struct service *service) MUST_CHECK;

/* Also after a start that failed.  Waits, at most a request's time and some seconds. */
void service_stop(struct service *service);

#endif
