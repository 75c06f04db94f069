/* counts.h - GET /uv, /pv, /ips, /visits: one number over one window.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_COUNTS_H
#define HANDLERS_COUNTS_H

#include "handlers/http.h"

enum handler_result uv_start(struct http_exchange *exchange);
enum handler_result pv_start(struct http_exchange *exchange);
enum handler_result ips_start(struct http_exchange *exchange);
enum handler_result visits_start(struct http_exchange *exchange);
void counts_finish(struct http_exchange *exchange);

#endif
