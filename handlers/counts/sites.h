/* sites.h - GET /sites: the sites that have had events, those that the token is for.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_COUNTS_SITES_H
#define HANDLERS_COUNTS_SITES_H

#include "handlers/http/http.h"

enum handler_result sites_start(struct http_exchange *exchange);
void sites_finish(struct http_exchange *exchange);

#endif
