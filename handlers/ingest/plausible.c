/* plausible.c - POST /api/event: what Plausible's trackers and tally.js send.
 *
 * plausible_event.h decodes the event, beacon.h counts it.  The answers:
 *
 *     202 `ok`                                 the page view, or the named event, is counted
 *     202 `ok` and X-Plausible-Dropped: n      n of them are not counted, although the event is
 *                                              well-formed: an engagement, or one of the reasons
 *                                              in beacon.h.  Plausible's trackers expect 202 here
 *     400 {"errors":{"member":["detail"]}}     the event has a fault
 *     others                                   a problem document, as for all endpoints */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/http/app.h"
#include "handlers/ingest/beacon.h"
#include "handlers/ingest/plausible_event.h"
#include "handlers/reply/json_body.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/reply/state.h"

_Static_assert(PLAUSIBLE_DOMAINS_MAX <= BEACON_EVENTS_MAX, "an event a domain");

struct plausible_state {
    struct plausible_event event;
    struct beacon beacon;
};

static void release(struct http_exchange *exchange)
{
    struct plausible_state *state = exchange->state;
    plausible_release(&state->event);
    beacon_release(&state->beacon);
    free(state);
}

static void reply_ok(struct http_exchange *exchange, size_t n_dropped)
{
    char text[24];
    reply_text(&exchange->response, 202, "text/plain; charset=utf-8", "ok", 2);
    if (n_dropped > 0) {
        (void)snprintf(text, sizeof(text), "%zu", n_dropped);
        (void)problem_add_header(&exchange->response, "X-Plausible-Dropped", text);
    }
}

static enum handler_result reply_fault(
    struct http_exchange *exchange, const struct plausible_fault *fault)
{
    app_stats_add(&exchange->app->stats->rejected_invalid, 1);
    reply_json(&exchange->response, 400,
        json_pack("{s:{s:[s]}}", "errors", fault->member != NULL ? fault->member : "request",
            fault->detail));
    return HANDLER_REPLY;
}

/* Check type and size of the body, and that there is no query.  False: the response says why. */
static bool check_request(struct http_exchange *exchange)
{
    if (!json_body_type(exchange, true)) {
        return false;
    }
    if (exchange->request.body.n > PLAUSIBLE_BODY_MAX) {
        problem_reply(&exchange->response, PROBLEM_TOO_LARGE, "an event may have at most %d bytes",
            PLAUSIBLE_BODY_MAX);
        return false;
    }
    return query_empty(exchange);
}

/* Make events of the page view, or of the named event: one for each domain. */
static void as_events(struct plausible_state *state)
{
    const struct plausible_event *event = &state->event;
    struct beacon *beacon = &state->beacon;
    struct slice page = event->kind == PLAUSIBLE_NAMED ? event->name : event->page;
    for (size_t i = 0; i < event->n_domains; i++) {
        beacon->events[i] = (struct event){.site = event->domains[i], .page = page};
    }
    beacon->n = event->n_domains;
    beacon->traits = (struct view_traits){.referrer = event->referrer,
        .url = event->url,
        .props = event->props,
        .n_props = event->n_props};
}

/* Answer for an engagement, which says how long somebody looked at a page whose view was sent
 * before.  Nothing is counted. */
static enum handler_result drop_engagement(
    struct http_exchange *exchange, struct plausible_state *state)
{
    if (!beacon_allowed(exchange, &state->beacon)) {
        return HANDLER_REPLY;
    }
    app_stats_add(&exchange->app->stats->dropped_engagement, 1);
    reply_ok(exchange, 1);
    ingest_guard_tell(exchange, state->beacon.events, state->beacon.n);
    return HANDLER_REPLY;
}

enum handler_result plausible_start(struct http_exchange *exchange)
{
    struct plausible_fault fault;
    if (!check_request(exchange)) {
        return HANDLER_REPLY;
    }
    struct plausible_state *state = state_begin(exchange, sizeof(*state), release);
    if (state == NULL) {
        return HANDLER_REPLY;
    }
    switch (plausible_decode(exchange->request.body, &state->event, &fault)) {
    case PLAUSIBLE_OK:
        break;
    case PLAUSIBLE_FAULT:
        return reply_fault(exchange, &fault);
    case PLAUSIBLE_NOMEM:
        (void)problem_no_memory(&exchange->response);
        return HANDLER_REPLY;
    }
    as_events(state);
    if (state->event.kind == PLAUSIBLE_ENGAGEMENT) {
        return drop_engagement(exchange, state);
    }
    enum beacon_verdict verdict = beacon_start(exchange, &state->beacon);
    if (verdict == BEACON_DROPPED) {
        reply_ok(exchange, state->beacon.n);
    }
    return verdict == BEACON_WAIT ? HANDLER_WAIT : HANDLER_REPLY;
}

void plausible_finish(struct http_exchange *exchange)
{
    struct plausible_state *state = exchange->state;
    if (beacon_finish(exchange, &state->beacon)) {
        reply_ok(exchange, 0);
    }
}
