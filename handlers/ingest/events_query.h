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

/* All of @query that decides what becomes of a body, as one number.  The number goes with the body
 * into a digest, by which a repeat is known.  Options are no part of it: SIGHUP may change them,
 * and a retry must stay a retry. */
uint64_t events_query_how(const struct events_query *query) MUST_CHECK;

/* Can events be dropped, for robots or for ignored addresses?  A request whose events are all
 * dropped takes nothing from a limit, so it must be decoded before it can be refused. */
bool events_query_may_drop(const struct events_query *query, const struct app *app);

/* The rules for events that arrive at @now_s. */
struct event_rules events_query_rules(
    const struct events_query *query, const struct app *app, int64_t now_s);

#endif
