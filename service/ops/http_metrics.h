/* http_metrics.h - count requests by route: how many with which status, and how long they took.
 *
 * Layer: service.  Thread-safe: the counters are atomic.  A scrape reads them while requests go on,
 * so sums and counts of one scrape may be some requests apart.
 */
#ifndef SERVICE_OPS_HTTP_METRICS_H
#define SERVICE_OPS_HTTP_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "storage/base/buffer.h"
#include "storage/base/compiler.h"

struct http_metrics;

/* Append formatted lines of Prometheus's text format.  What exceeds 511 bytes is cut off. */
void metrics_put(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counters for @n_routes routes, and for requests that no route served.  @routes must outlive the
 * result.  NULL: out of memory. */
struct http_metrics *http_metrics_new(const struct route *routes, size_t n_routes) MUST_CHECK;
void http_metrics_free(struct http_metrics *metrics); /* NULL is fine */

/* Count an answer.  @route is an index, or n_routes if no route served the request. */
void http_metrics_observe(
    struct http_metrics *metrics, size_t route, unsigned status, int64_t latency_us);

/* Append these metrics in Prometheus's text format. */
void http_metrics_print(const struct http_metrics *metrics, struct buffer *out);

#endif
