#include "handlers/ingest/dress.h"

#include "handlers/access/cors.h"
#include "handlers/ingest/ingest_guard.h"
#include "handlers/ingest/pixel.h"
#include "handlers/ingest/segment_dress.h"

void answer_dress(struct http_exchange *exchange, unsigned flags, struct slice origin, bool known)
{
    if ((flags & ROUTE_GUARDED) != 0 && known) {
        ingest_guard_dress(exchange);
    }
    if ((flags & ROUTE_GIF) != 0) {
        pixel_dress(&exchange->response);
    }
    if ((flags & ROUTE_BASIC) != 0) {
        segment_dress(&exchange->response);
    }
    cors_dress(exchange->app, origin, flags, &exchange->response);
}
