/* overlap.h - GET /overlap: visitors that two pages have in common.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_COUNTS_OVERLAP_H
#define HANDLERS_COUNTS_OVERLAP_H

#include "handlers/http/http.h"

enum handler_result overlap_start(struct http_exchange *exchange);
void overlap_finish(struct http_exchange *exchange);

#endif
