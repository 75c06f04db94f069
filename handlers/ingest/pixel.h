/* pixel.h - every answer to GET /pixel.gif is the image.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * The reader of a page must not see a broken image, whatever becomes of the page view.  So the body
 * is the image always.  The status is the one that POST /events would have given, and the header
 * field X-Tallyd says the same in a word.
 *
 * Some requests are refused before the handler is reached, for their token or their size, say.
 * Therefore pixel_dress() gets every answer of a route with ROUTE_GIF (see dress.h).
 */
#ifndef HANDLERS_INGEST_PIXEL_H
#define HANDLERS_INGEST_PIXEL_H

#include "handlers/http/http.h"

/* Put the image in place of the body, which is freed.  The status and the other fields stay. */
void pixel_dress(struct http_response *response);

#endif
