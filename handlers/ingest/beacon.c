#include "handlers/ingest/beacon.h"

#include "handlers/access/access.h"
#include "handlers/access/client.h"
#include "handlers/access/declared_site.h"
#include "handlers/http/app.h"
#include "handlers/ingest/events_reply.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/state.h"

/* Does a browser fetch the page in advance?  Its user may never look at the page. */
static bool is_prefetch(struct slice purpose)
{
    static const struct slice word = {"prefetch", sizeof("prefetch") - 1};
    return slice_begins(purpose, word) && (purpose.n == word.n || purpose.p[word.n] == ';');
}

bool beacon_allowed(struct http_exchange *exchange, const struct beacon *beacon)
{
    for (size_t i = 0; i < beacon->n; i++) {
        struct slice site = beacon->events[i].site;
        if (!access_site(exchange, site)) {
            return false;
        }
        if (!declared_site_takes(exchange->app, site)) {
            json_t *error =
                json_pack("[{s:s,s:s}]", "pointer", "/site", "detail", DECLARED_SITE_DETAIL);
            problem_reply_errors(
                &exchange->response, PROBLEM_UNACCEPTABLE, error, "site: %s", DECLARED_SITE_DETAIL);
            app_stats_add(&exchange->app->stats->rejected_invalid, beacon->n);
            return false;
        }
    }
    return true;
}

/* The counter of the reason why the page views are dropped; NULL: they are not dropped. */
static _Atomic int64_t *why_dropped(
    const struct http_exchange *exchange, const struct event_address *address)
{
    const struct app *app = exchange->app;
    const struct slice *fields = exchange->request.fields;
    if (is_prefetch(fields[FIELD_SEC_PURPOSE])) {
        return &app->stats->dropped_prefetch;
    }
    if (app->respect_dnt && (slice_equal(fields[FIELD_DNT], SLICE("1")) ||
                                slice_equal(fields[FIELD_SEC_GPC], SLICE("1")))) {
        return &app->stats->dropped_dnt;
    }
    if (networks_hold(app->ignored, app->n_ignored, address)) {
        return &app->stats->dropped_ignored;
    }
    return robots_cache_known(app->robots, fields[FIELD_USER_AGENT]) ? &app->stats->dropped_robot
                                                                     : NULL;
}

/* Add to @traits what the header says and the caller has not filled in.  Only a trusted proxy may
 * say in which country the client is. */
static void read_traits(const struct http_exchange *exchange, struct view_traits *traits)
{
    const struct slice *fields = exchange->request.fields;
    if (traits->language.n == 0) {
        traits->language = fields[FIELD_ACCEPT_LANGUAGE];
    }
    if (exchange->app->country_header && client_is_proxied(exchange)) {
        traits->country = fields[FIELD_COUNTRY];
    }
}

/* Find the values that the page views are counted by.  False: memory is out, and the response says
 * so. */
static bool derive(struct http_exchange *exchange, struct beacon *beacon)
{
    read_traits(exchange, &beacon->traits);
    for (size_t i = 0; i < beacon->n; i++) {
        if (!derive_view(exchange->app, &beacon->traits, &beacon->events[i], &beacon->arena)) {
            return problem_no_memory(&exchange->response);
        }
    }
    return true;
}

enum beacon_verdict beacon_start(struct http_exchange *exchange, struct beacon *beacon)
{
    const struct http_request *request = &exchange->request;
    struct event_address address = client_address(exchange);
    if (!beacon_allowed(exchange, beacon)) {
        return BEACON_REFUSED;
    }
    for (size_t i = 0; i < beacon->n; i++) {
        struct event *event = &beacon->events[i];
        event->at_s = request->now_ms / 1000;
        event->address = address;
        event->agent = request->fields[FIELD_USER_AGENT];
    }
    _Atomic int64_t *dropped = why_dropped(exchange, &address);
    if (dropped != NULL) {
        app_stats_add(dropped, beacon->n);
        ingest_guard_tell(exchange, beacon->events, beacon->n);
        return BEACON_DROPPED;
    }
    if (!state_has_time(exchange) || !derive(exchange, beacon)) {
        return BEACON_REFUSED;
    }
    exchange->job.op = STORAGE_WRITE;
    exchange->job.u.write = (struct write_job){.events = beacon->events, .n = beacon->n};
    return ingest_guard_admit(exchange, &beacon->guard, beacon->events, beacon->n) ? BEACON_WAIT
                                                                                   : BEACON_REFUSED;
}

enum beacon_verdict beacon_foretell(struct http_exchange *exchange, const struct beacon *beacon)
{
    if (!beacon_allowed(exchange, beacon)) {
        return BEACON_REFUSED;
    }
    struct event_address address = client_address(exchange);
    if (why_dropped(exchange, &address) != NULL) {
        ingest_guard_tell(exchange, beacon->events, beacon->n);
        return BEACON_DROPPED;
    }
    if (exchange->request.now_ms == 0 ||
        atomic_load(&storage_stats(exchange->app->storage)->redis_connected) == 0) {
        problem_from_storage(&exchange->response, STORAGE_DOWN, NULL);
        return BEACON_REFUSED;
    }
    return ingest_guard_foretell(exchange, beacon->events, beacon->n) ? BEACON_WAIT
                                                                      : BEACON_REFUSED;
}

bool beacon_finish(struct http_exchange *exchange, struct beacon *beacon)
{
    struct app_stats *stats = exchange->app->stats;
    enum storage_err err = exchange->job.err;
    if (err == STORAGE_OK) {
        app_stats_add(&stats->events_accepted, beacon->n);
        site_stats_count(exchange->app->site_stats, beacon->events, beacon->n);
        ingest_guard_headers(exchange, &beacon->guard);
        return true;
    }
    if (err == STORAGE_LIMITED) {
        ingest_guard_refused(exchange);
        return false;
    }
    events_reply_failed(exchange, err);
    return false;
}

void beacon_release(struct beacon *beacon)
{
    ingest_guard_release(&beacon->guard);
    arena_release(&beacon->arena);
}
