/* grafana.h - /grafana/...: what Grafana's JSON data sources ask for.
 *
 * Layer: handlers.
 * Made for simpod-json-datasource 0.6 (GET /, POST /metrics, /metric-payload-options, /query,
 * /variable, /tag-keys, /tag-values) and for the older grafana-simple-json-datasource (POST
 * /search, /annotations); Infinity, the one to be pointed to, asks the plain API, or POST /query.
 * All paths are found with and without a slash at the end; bodies may be application/json or
 * text/plain; query parameters and members that mean nothing here are passed over.  A problem's
 * `message` is what a panel shows.
 *
 * POST /query answers a series, or a table, for each target: its jobs go to storage one after the
 * other.
 */
#ifndef HANDLERS_GRAFANA_GRAFANA_H
#define HANDLERS_GRAFANA_GRAFANA_H

#include "handlers/http/http.h"

enum handler_result grafana_test_start(struct http_exchange *exchange);
enum handler_result grafana_metrics_start(struct http_exchange *exchange);
enum handler_result grafana_annotations_start(struct http_exchange *exchange);
enum handler_result grafana_tag_keys_start(struct http_exchange *exchange);

enum handler_result grafana_query_start(struct http_exchange *exchange);
void grafana_query_finish(struct http_exchange *exchange);

#endif
