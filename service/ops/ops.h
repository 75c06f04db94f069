/* ops.h - the endpoints about the process: /healthz, /readyz and /metrics.
 *
 * Layer: service.  The functions are written against handlers/http/http.h, as those of handlers/.
 * Thread safety: the functions run on any HTTP thread.
 */
#ifndef SERVICE_OPS_OPS_H
#define SERVICE_OPS_OPS_H

#include <pthread.h>

#include "handlers/http/http.h"
#include "service/ops/http_metrics.h"

struct http_server;
struct logger;

extern const struct route ops_routes[];
extern const size_t n_ops_routes;

/* What these endpoints need beside what all handlers share; app->ops points here. */
struct ops {
    struct http_metrics *http;
    const struct logger *logger;
    struct http_server *_Atomic server; /* NULL before its start and after its stop */
    int64_t started_ms;                 /* UTC */

    /* The last write probe.  Requests share one probe a second. */
    struct write_probe {
        pthread_mutex_t lock; /* guards the rest */
        bool under_way, known;
        enum storage_err err;
        char detail[96];
        char degraded[PROBE_DEGRADED];
        int64_t at_ms;  /* CLOCK_MONOTONIC */
        uint64_t fault; /* storage_write_fault() when the probe began: see probed() in ops.c */
    } * probe;
};

#endif
