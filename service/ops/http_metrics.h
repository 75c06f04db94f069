/* http_metrics.h - requests by route: how many with which status, how long they took.
 *
 * Layer: service.  Thread-safe: counters are atomic, and a scrape reads them without stopping
 * anybody, so that sums and counts of one scrape may be some requests apart.
 */
#ifndef SERVICE_OPS_HTTP_METRICS_H
#define SERVICE_OPS_HTTP_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "storage/base/buffer.h"

struct http_metrics;

/* For @n_routes routes and one more: requests that no route served.  NULL: out of memory. */
struct http_metrics *http_metrics_new(const struct route *routes, size_t n_routes);
void http_metrics_free(struct http_metrics *metrics);

/* One answer was sent; @route is n_routes if none served it. */
void http_metrics_observe(
    struct http_metrics *metrics, size_t route, unsigned status, int64_t latency_us);

/* Append the text of /metrics. */
void http_metrics_print(const struct http_metrics *metrics, struct buffer *out);

#endif
