/* pages.h - GET /pages: the top pages of a window, by page views or by visitors.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_COUNTS_PAGES_H
#define HANDLERS_COUNTS_PAGES_H

#include "handlers/http/http.h"

enum handler_result pages_start(struct http_exchange *exchange);
void pages_finish(struct http_exchange *exchange);

#endif
