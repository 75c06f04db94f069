/* events_reply.h - the answers of POST /events that tell what became of its events.
 *
 * Layer: handlers.  Thread-safe: no state.  The functions cannot fail: without memory the answer is
 * a 503, or a status with an empty body.
 */
#ifndef HANDLERS_INGEST_EVENTS_REPLY_H
#define HANDLERS_INGEST_EVENTS_REPLY_H

#include "handlers/http/http.h"
#include "handlers/ingest/event_json.h"
#include "storage/base/compiler.h"

/* 202 {"accepted","rejected","errors"}, and "dropped","dropped_total" where events were dropped. */
void events_reply_accepted(struct http_response *response, const struct event_batch *batch);

/* Put "first" behind the members of @response, a 202 for a request with first=1.  @found has @n
 * events, as struct first_job has them.  False: out of memory, and the response is as it was. */
bool events_reply_add_first(
    struct http_response *response, const struct first_event *found, size_t n) MUST_CHECK;

/* 422: no event is acceptable, or one of them is not and takes all others with it. */
void events_reply_rejected(
    struct http_response *response, const struct event_batch *batch, bool strict);

/* 400: the body is no JSON. */
void events_reply_malformed(struct http_response *response, const struct event_batch *batch);

/* 403: the token is not for @site. */
void events_reply_forbidden(struct http_response *response, struct slice site);

/* Storage has ended a job of the request with @err, which is not STORAGE_OK: count the request as
 * rejected, and answer with a problem.  Used by all endpoints that take events. */
void events_reply_failed(struct http_exchange *exchange, enum storage_err err);

#endif
