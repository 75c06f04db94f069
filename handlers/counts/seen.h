/* seen.h - GET /seen: did this user view this page?
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_COUNTS_SEEN_H
#define HANDLERS_COUNTS_SEEN_H

#include "handlers/http/http.h"

enum handler_result seen_start(struct http_exchange *exchange);
void seen_finish(struct http_exchange *exchange);

#endif
