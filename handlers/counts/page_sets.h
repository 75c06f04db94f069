/* page_sets.h - PUT, GET and DELETE /pagesets/{name}: pages under one name, to be asked for as one.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_COUNTS_PAGE_SETS_H
#define HANDLERS_COUNTS_PAGE_SETS_H

#include "handlers/http/http.h"

enum handler_result page_set_put_start(struct http_exchange *exchange);
void page_set_put_finish(struct http_exchange *exchange);
enum handler_result page_set_get_start(struct http_exchange *exchange);
void page_set_get_finish(struct http_exchange *exchange);
enum handler_result page_set_delete_start(struct http_exchange *exchange);
void page_set_delete_finish(struct http_exchange *exchange);

#endif
