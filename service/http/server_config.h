/* server_config.h - what an HTTP server is told when it is started.
 *
 * Layer: service.  Apart from http/server.h, because the server's own files need it too and
 * http/server.c needs them.
 */
#ifndef SERVICE_HTTP_SERVER_CONFIG_H
#define SERVICE_HTTP_SERVER_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "service/tokens/tokens.h"

struct http_metrics;

/* All members must be set, except those that may be NULL. */
struct http_server_config {
    const char *host;         /* an address or a name; IPv6 without brackets */
    uint16_t port;            /* 0: the system chooses, see http_server_port */
    unsigned threads;         /* at least 1 */
    unsigned max_connections; /* at least 1; if more come, silent ones are closed (reaper.h) */
    size_t max_body;          /* bytes, decompressed */
    size_t max_body_memory;   /* bytes, all bodies in flight together; one body always fits */
    int64_t request_timeout_ms;
    int64_t idle_timeout_ms; /* how long a client may be silent between requests, or not read */

    const struct app *app; /* handed to handlers */
    struct tokens *tokens; /* NULL: no request needs a token */
    const struct route *routes;
    size_t n_routes;

    /* Storage, as functions, so that tests need no Redis: storage_submit() and storage_now_ms().
     * Called on any thread, with `storage`. */
    void (*submit)(struct storage *storage, struct storage_job *job);
    int64_t (*now_ms)(struct storage *storage);
    /* Begin what was submitted with `more_follow`: storage_flush().  May be NULL. */
    void (*flush)(struct storage *storage);
    struct storage *storage;

    /* Called once for each answer that was queued, when the answer has been sent or its connection
     * was lost: http_metrics_observe(), with `metrics`.  @route is n_routes if no route served the
     * request.  Runs on an HTTP thread and must not block.  May be NULL. */
    void (*observe)(
        struct http_metrics *metrics, size_t route, unsigned status, int64_t latency_us);
    struct http_metrics *metrics;
};

#endif
