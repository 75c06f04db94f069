/* parts.h - the parts of a running tallyd: the embedded Redis, storage and the HTTP server.
 *
 * Layer: service.  Each part needs the parts before it: Redis, then storage, then HTTP.  They are
 * stopped in reverse.  First no new connection is accepted, then requests under way finish, then
 * the parts end that those requests needed.
 *
 * Ownership: serve.c owns the struct and fills its first half.  service_start() makes the second
 * half, and service_stop() frees it.
 * Thread safety: the main thread alone.  Redis gets a signal when the thread ends that forked it.
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
    int argc; /* the command line, for reading the options again */
    char **argv;
    struct options options; /* the options as they were at the start */
    struct listen_address listen;
    struct tokens *tokens; /* NULL: no request needs a token */
    struct limit guard_limit;
    enum guard_by guard_by;
    struct logger *logger;
    struct redis_news news;

    struct redis_child *child; /* NULL: --redis names a server that somebody else runs */
    const char *redis_url;
    struct app app; /* what all handlers share; requests see a copy that `live` makes */
    struct app_stats stats;
    struct site_stats site_stats;
    struct robots_cache robots;
    struct ops ops;
    struct write_probe probe;
    struct geo *geo;   /* NULL: there is no --geo-db */
    struct live *live; /* the live options as requests see them */
    struct route *routes;
    size_t n_routes;
    struct http_server *server;
};

/* Start all parts.  0, or the exit status; service_stop() frees what was made by then. */
int service_start(struct service *service) MUST_CHECK;

/* Stop what was started, also after a start that failed.  This waits for requests under way: at
 * most the time of one request and some seconds. */
void service_stop(struct service *service);

#endif
