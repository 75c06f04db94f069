/* events_query.h - how the body of POST /events is to be read: its type, and the parameters.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 *     strict=1           one bad event rejects the whole request
 *     bots=drop|count    what becomes of the page views of known robots; else as --bots says
 *     dedupe=body        the body is the request's Idempotency-Key
 *     first=1            the answer says which actions were the first of their user's day
 */
#ifndef HANDLERS_INGEST_EVENTS_QUERY_H
#define HANDLERS_INGEST_EVENTS_QUERY_H

#include "handlers/http/http.h"
#include "handlers/ingest/event_json.h"
#include "storage/base/compiler.h"

enum events_bots { EVENTS_BOTS_DEFAULT, EVENTS_BOTS_DROP, EVENTS_BOTS_COUNT };

struct events_query {
    enum event_body form;
    bool strict;
    bool key_of_body;
    bool first;
    enum events_bots bots;
};

/* Read Content-Type and the query.  False: the response is a 400, 415 or 503. */
bool events_query_read(struct http_exchange *exchange, struct events_query *ret) MUST_CHECK;

/* All that decides what becomes of a body, as one number: with the body it makes a digest.  An
 * option that SIGHUP may change is no part of it, so that a retry stays a retry. */
uint64_t events_query_how(const struct events_query *query) MUST_CHECK;

/* Can events be dropped, as of robots or of ignored addresses?  A request of which all is dropped
 * takes nothing from a limit, so what it holds must be known before it is refused. */
bool events_query_may_drop(const struct events_query *query, const struct app *app);

/* The rules for events that arrive at @now_s. */
struct event_rules events_query_rules(
    const struct events_query *query, const struct app *app, int64_t now_s);

#endif
