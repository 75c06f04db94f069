/* segment.c - POST /v1/batch, /v1/page, /v1/track, ..: Segment's HTTP API, for its SDKs.
 *
 * segment_json.h decodes the messages.  The answers:
 *
 *     200 {"success":true}                     all page views and named events are counted
 *     200 {"success":true,"rejected":n,        n messages break a rule, and the others are counted;
 *          "message":text}                     the text is about the first of the n
 *     400 {"success":false,"code":"bad_request","message":text}
 *                                              nothing is counted: no message is acceptable, or the
 *                                              body is no batch.  SDKs do not send it again
 *     others                                   a problem document, as for all endpoints, with the
 *                                              same three members (segment_dress.h)
 *
 * SDKs send a batch again with another `sentAt`, but with the same messageIds.  So the messageIds
 * (and the site) are the batch's Idempotency-Key, if all its messages have one. */
#include "handlers/ingest/events_reply.h"
#include "handlers/routes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/access/declared_site.h"
#include "handlers/dimension/derive.h"
#include "handlers/http/app.h"
#include "handlers/ingest/events_query.h"
#include "handlers/ingest/idempotency.h"
#include "handlers/ingest/ingest_guard.h"
#include "handlers/ingest/segment_json.h"
#include "handlers/reply/json_body.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/reply/state.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

/* How the body is read, for request_key_of_body(): a number that events_query_how() never returns,
 * so that POST /events has other keys. */
#define HOW_SEGMENT (UINT64_C(1) << 32)

struct segment_state {
    struct params params;
    struct segment_body body;
    struct ingest_guard guard;
    bool keyed;
    struct request_key key;
};

static void release(struct http_exchange *exchange)
{
    struct segment_state *state = exchange->state;
    params_release(&state->params);
    segment_body_release(&state->body);
    ingest_guard_release(&state->guard);
    request_key_release(&state->key);
    free(state);
}

/* ---- answers ---- */

/* Answer 400.  Returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse(
    struct http_exchange *exchange, const char *format, ...)
{
    char text[PROBLEM_DETAIL_MAX + 1];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    reply_json(&exchange->response, 400, json_pack("{s:s}", "message", text));
    return false;
}

static void reply_success(struct http_exchange *exchange, const struct segment_body *body)
{
    if (body->rejected == 0) {
        static const char text[] = "{\"success\":true}";
        reply_text(&exchange->response, 200, "application/json", text, sizeof(text) - 1);
        return;
    }
    json_t *message =
        json_sprintf("message %zu: %s: %s", body->fault_index, body->fault_at, body->fault);
    reply_json(&exchange->response, 200,
        json_pack("{s:b,s:I,s:o?}", "success", 1, "rejected", (json_int_t)body->rejected, "message",
            message));
}

/* Answer 401.  Returns false. */
static bool ask_token(struct http_exchange *exchange)
{
    problem_reply(&exchange->response, PROBLEM_UNAUTHORIZED,
        "a token is needed: as the user name of Basic, as Bearer, or as writeKey");
    (void)problem_add_header(&exchange->response, "WWW-Authenticate", ACCESS_CHALLENGE);
    return false;
}

/* ---- reading the request; false: the response says what is wrong ---- */

static bool read_query(struct http_exchange *exchange, struct params *params)
{
    static const struct param_spec specs[] = {{"site", false}};
    switch (params_parse(exchange->request.query, specs, 1, params)) {
    case PARAMS_OK:
        return true;
    case PARAMS_REFUSED:
        return refuse(exchange, "%s: %s", params->error.parameter, params->error.detail);
    case PARAMS_NOMEM:
        break;
    }
    return problem_no_memory(&exchange->response);
}

static bool read_body(
    struct http_exchange *exchange, enum segment_call call, struct segment_body *body)
{
    const struct app *app = exchange->app;
    const struct http_request *request = &exchange->request;
    const struct events_query query = {.strict = false};
    struct event_rules rules = events_query_rules(&query, app, request->now_ms / 1000);
    switch (segment_decode(request->body_bytes, request->body.n, call, &rules, body)) {
    case SEGMENT_OK:
        return true;
    case SEGMENT_MALFORMED:
        app_stats_add(&app->stats->rejected_malformed, 1);
        return exchange->tokenless ? ask_token(exchange)
                                   : refuse(exchange, "line %zu, column %zu: %s", body->line,
                                         body->column, body->detail);
    case SEGMENT_TOO_MANY:
        app_stats_add(&app->stats->rejected_too_many, 1);
        return refuse(exchange, "a batch may bring at most %zu messages", app->max_events);
    case SEGMENT_NOMEM:
        break;
    }
    return problem_no_memory(&exchange->response);
}

static bool read_token(struct http_exchange *exchange, const struct segment_body *body)
{
    if (!exchange->tokenless) {
        return true;
    }
    if (body->write_key.n > 0) {
        return exchange->show_token(exchange, body->write_key);
    }
    return ask_token(exchange);
}

/* Find the site of the messages: that of the query, else the token's only site, else the default
 * site.  With the site the events are completed. */
static bool read_site(struct http_exchange *exchange, struct segment_state *state)
{
    const struct access *access = exchange->access;
    struct segment_body *body = &state->body;
    struct slice site =
        access != NULL && access->n_sites == 1 ? access->sites[0] : EVENT_SITE_DEFAULT;
    if (params_get(&state->params, "site", &site) && event_check_site(site) != NULL) {
        return refuse(exchange, "site: %s", event_check_site(site));
    }
    if (!access_site(exchange, site)) {
        return false;
    }
    if (body->n > 0 && !declared_site_takes(exchange->app, site)) {
        app_stats_add(&exchange->app->stats->rejected_invalid, body->n);
        return refuse(exchange, "site: %s", DECLARED_SITE_DETAIL);
    }
    for (size_t i = 0; i < body->n; i++) {
        const struct segment_traits *sent = &body->traits[i];
        struct view_traits traits = {
            .referrer = sent->referrer, .url = sent->url, .language = sent->language};
        memcpy(traits.utm, sent->utm, sizeof(traits.utm));
        body->events[i].site = site;
        if (!derive_view(exchange->app, &traits, &body->events[i], &body->arena)) {
            return problem_no_memory(&exchange->response);
        }
    }
    return true;
}

static bool read_request(
    struct http_exchange *exchange, enum segment_call call, struct segment_state *state)
{
    struct segment_body *body = &state->body;
    if (!json_body_type(exchange, true) || !read_query(exchange, &state->params) ||
        !state_has_time(exchange) || !read_body(exchange, call, body) ||
        !read_token(exchange, body) || !read_site(exchange, state)) {
        return false;
    }
    if (body->rejected > 0 && body->rejected == body->n_messages) {
        app_stats_add(&exchange->app->stats->rejected_invalid, body->rejected);
        return refuse(
            exchange, "message %zu: %s: %s", body->fault_index, body->fault_at, body->fault);
    }
    return true;
}

/* ---- the life of a request ---- */

/* Make the request's key of the messageIds, if all messages have one.  There is at least one event.
 * False: out of memory. */
static bool read_key(const struct http_exchange *exchange, struct segment_state *state)
{
    const struct segment_body *body = &state->body;
    if (!body->all_have_ids) {
        return true;
    }
    /* The site is part of the key, because the same messages may be sent for another site, too. */
    buffer_append(&state->body.ids, body->events[0].site.p, body->events[0].site.n);
    if (body->ids.failed) {
        return false;
    }
    struct slice ids = {body->ids.p, body->ids.n};
    state->keyed = true;
    state->key.key = request_key_of_body(idempotency_owner(exchange), HOW_SEGMENT, ids);
    state->key.body = request_body_digest(HOW_SEGMENT, ids);
    return true;
}

static void count_counted(const struct http_exchange *exchange, const struct segment_body *body)
{
    struct app_stats *stats = exchange->app->stats;
    app_stats_add(&stats->events_accepted, body->n);
    site_stats_count(exchange->app->site_stats, body->events, body->n);
    app_stats_add(&stats->rejected_invalid, body->rejected);
    app_stats_add(&stats->dropped_other, body->uncounted);
    app_stats_add(&stats->dropped_robot, body->dropped_robots);
    app_stats_add(&stats->dropped_ignored, body->dropped_ignored);
}

/* Fill the job that appends the events.  The response is filled already.  HANDLER_REPLY: the guard
 * has refused the events, and the response says so. */
static enum handler_result write_events(struct http_exchange *exchange, struct segment_state *state)
{
    const struct segment_body *body = &state->body;
    exchange->job.op = STORAGE_WRITE;
    state->key.answer = (struct slice){exchange->response.body, exchange->response.body_n};
    exchange->job.u.write = (struct write_job){
        .events = body->events, .n = body->n, .keyed = state->keyed ? &state->key : NULL};
    return ingest_guard_admit(exchange, &state->guard, body->events, body->n) ? HANDLER_WAIT
                                                                              : HANDLER_REPLY;
}

enum handler_result segment_start(struct http_exchange *exchange)
{
    enum segment_call call = segment_call_of_path(exchange->request.segment);
    if (call == SEGMENT_UNKNOWN) {
        problem_reply(&exchange->response, PROBLEM_NOT_FOUND, "no such path");
        return HANDLER_REPLY;
    }
    struct segment_state *state = state_begin(exchange, sizeof(*state), release);
    if (state == NULL || !read_request(exchange, call, state)) {
        return HANDLER_REPLY;
    }
    reply_success(exchange, &state->body);
    if (exchange->response.status != 200) {
        return HANDLER_REPLY;
    }
    if (state->body.n == 0) {
        count_counted(exchange, &state->body);
        return HANDLER_REPLY;
    }
    if (!read_key(exchange, state)) {
        (void)problem_no_memory(&exchange->response);
        return HANDLER_REPLY;
    }
    /* A repeat gets its first answer, also if it is over the limit now: so the key is looked for
     * before the guard is asked. */
    if (state->keyed && exchange->app->guard_by != GUARD_OFF) {
        exchange->job.op = STORAGE_LOOK_KEY;
        exchange->job.u.look_key = &state->key;
        return HANDLER_WAIT;
    }
    return write_events(exchange, state);
}

void segment_finish(struct http_exchange *exchange)
{
    struct segment_state *state = exchange->state;
    bool looked = exchange->job.op == STORAGE_LOOK_KEY;
    if (exchange->job.err == STORAGE_LIMITED) {
        ingest_guard_refused(exchange);
    } else if (exchange->job.err != STORAGE_OK) {
        events_reply_failed(exchange, exchange->job.err);
    } else if (state->keyed && state->key.outcome != (looked ? KEY_FREE : KEY_MINE)) {
        idempotency_reply(&exchange->response, 200, &state->key);
    } else if (looked) {
        exchange->again = write_events(exchange, state) == HANDLER_WAIT;
    } else {
        count_counted(exchange, &state->body);
        ingest_guard_headers(exchange, &state->guard);
    }
}
