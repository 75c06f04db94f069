/* counts.h - GET /uv, /pv, /ips, /visits and all of them, /stats: figures over one window, with
 * `step` also a series.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_COUNTS_COUNTS_H
#define HANDLERS_COUNTS_COUNTS_H

#include "handlers/http/http.h"

enum handler_result uv_start(struct http_exchange *exchange);
enum handler_result pv_start(struct http_exchange *exchange);
enum handler_result ips_start(struct http_exchange *exchange);
enum handler_result visits_start(struct http_exchange *exchange);
enum handler_result stats_start(struct http_exchange *exchange);
void counts_finish(struct http_exchange *exchange);

#endif
