/* plausible.h - POST /api/event: page views from Plausible's trackers, and from tally.js.
 *
 * Layer: handlers.  What comes in is plausible_event.h's; what becomes of it is beacon.h's.
 *
 * 202 `ok`.  Where something well-formed is not counted (a custom event, a bot, who asked not to
 * be) it is a 202 too, as Plausible's trackers expect, and `X-Plausible-Dropped` says how many.
 * Faults of the event: 400 {"errors":{"member":["detail"]}}; all else are problems as everywhere.
 */
#ifndef HANDLERS_INGEST_PLAUSIBLE_H
#define HANDLERS_INGEST_PLAUSIBLE_H

#include "handlers/http/http.h"

enum handler_result plausible_start(struct http_exchange *exchange);
void plausible_finish(struct http_exchange *exchange);

#endif
