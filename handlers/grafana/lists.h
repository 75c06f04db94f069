/* lists.h - names for Grafana to choose from: variables, options of queries, values of
 * filters.
 *
 * Layer: handlers.
 * What is listed: `sites` (those that the token may read), `pages` (of a site, by page views, in
 * the time range of the request or the last 7 days, at most 1,000), `metrics`.  A variable's query
 * is one of these words; pages of a site are `pages(SITE)`, or come with {"site": SITE} in the
 * payload.
 */
#ifndef HANDLERS_GRAFANA_LISTS_H
#define HANDLERS_GRAFANA_LISTS_H

#include "handlers/http/http.h"

enum handler_result grafana_variable_start(struct http_exchange *exchange);
enum handler_result grafana_search_start(struct http_exchange *exchange);
enum handler_result grafana_options_start(struct http_exchange *exchange);
enum handler_result grafana_tag_values_start(struct http_exchange *exchange);
void grafana_list_finish(struct http_exchange *exchange);

#endif
