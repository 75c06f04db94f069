/* pixel.h - GET /pixel.gif: a page view by an image, for pages without scripts.
 *
 * Layer: handlers.
 *
 * Whatever becomes of the page view, the answer is the image, so that no reader sees a broken one:
 * the status is the one that POST /events would have given, and X-Tallyd says it in a word.  That
 * holds for refusals before the handler is reached too (tokens, a body too large), so the service
 * has every answer of a route with ROUTE_GIF go through pixel_dress().
 */
#ifndef HANDLERS_INGEST_PIXEL_H
#define HANDLERS_INGEST_PIXEL_H

#include "handlers/http/http.h"

enum handler_result pixel_start(struct http_exchange *exchange);
void pixel_finish(struct http_exchange *exchange);

/* Put the image in place of the body.  The status and the other headers stay. */
void pixel_dress(struct http_response *response);

#endif
