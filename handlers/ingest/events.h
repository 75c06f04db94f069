/* events.h - POST /events: page views in.
 *
 * Layer: handlers.  start() decodes and checks the body and has storage write what is acceptable;
 * finish() answers 202 with what was not, once storage says that the rest is durable.
 */
#ifndef HANDLERS_INGEST_EVENTS_H
#define HANDLERS_INGEST_EVENTS_H

#include "handlers/http/http.h"

enum handler_result events_start(struct http_exchange *exchange);
void events_finish(struct http_exchange *exchange);

#endif
