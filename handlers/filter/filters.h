/* filters.h - /filters/{name}: named Bloom filters.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_FILTER_FILTERS_H
#define HANDLERS_FILTER_FILTERS_H

#include "handlers/http/http.h"

enum handler_result filter_put_start(struct http_exchange *exchange);
enum handler_result filter_get_start(struct http_exchange *exchange);
enum handler_result filter_delete_start(struct http_exchange *exchange);
enum handler_result filter_add_start(struct http_exchange *exchange);
enum handler_result filter_check_start(struct http_exchange *exchange);
void filter_finish(struct http_exchange *exchange);

#endif
