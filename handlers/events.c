#include "handlers/events.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/access.h"
#include "handlers/app.h"
#include "handlers/event_json.h"
#include "handlers/ingest_guard.h"
#include "handlers/media_type.h"
#include "handlers/params.h"
#include "handlers/problem.h"
#include "handlers/reply.h"

static const struct param_spec specs[] = {{"strict", false}};

struct events_state {
    struct event_batch batch;
    struct ingest_guard guard;
};

static void release(struct http_exchange *exchange)
{
    struct events_state *state = exchange->state;
    event_batch_release(&state->batch);
    ingest_guard_release(&state->guard);
    free(state);
}

static void count(_Atomic int64_t *counter, size_t n)
{
    atomic_fetch_add_explicit(counter, (int64_t)n, memory_order_relaxed);
}

/* ---- what was asked ---- */

static bool read_form(struct http_exchange *exchange, enum event_body *ret)
{
    struct slice type = exchange->request.fields[FIELD_CONTENT_TYPE];
    if (type.n == 0 || media_type_is(type, "application/json")) {
        *ret = EVENT_BODY_JSON;
        return true;
    }
    if (media_type_is(type, "application/x-ndjson")) {
        *ret = EVENT_BODY_NDJSON;
        return true;
    }
    problem_reply(&exchange->response, PROBLEM_MEDIA_TYPE,
        "the body must be application/json or application/x-ndjson");
    return false;
}

static bool read_strict(struct http_exchange *exchange, bool *ret)
{
    struct params params = {0};
    bool ok = true;
    *ret = false;
    if (exchange->request.query.n == 0) {
        return true;
    }
    switch (params_parse(exchange->request.query, specs, 1, &params)) {
    case PARAMS_OK:
        ok = params_flag(&params, "strict", ret);
        if (!ok) {
            problem_reply_parameter(
                &exchange->response, PROBLEM_MALFORMED, "strict", PARAMS_FLAG_DETAIL);
        }
        break;
    case PARAMS_REFUSED:
        problem_reply_parameter(&exchange->response, PROBLEM_MALFORMED, params.error.parameter,
            "%s", params.error.detail);
        ok = false;
        break;
    case PARAMS_NOMEM:
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        ok = false;
        break;
    }
    params_release(&params);
    return ok;
}

/* ---- answers ---- */

static json_t *list_errors(const struct event_batch *batch)
{
    json_t *errors = json_array();
    for (size_t i = 0; errors != NULL && i < batch->n_rejects; i++) {
        const struct event_reject *reject = &batch->rejects[i];
        json_array_append_new(errors, json_pack("{s:I,s:s,s:s}", "index", (json_int_t)reject->index,
                                          "pointer", reject->pointer, "detail", reject->detail));
    }
    return errors;
}

static void reply_accepted(struct http_exchange *exchange, const struct event_batch *batch)
{
    if (batch->rejected == 0) { /* the usual answer, without a tree */
        char text[64];
        int n = snprintf(
            text, sizeof(text), "{\"accepted\":%zu,\"rejected\":0,\"errors\":[]}", batch->n);
        reply_text(&exchange->response, 202, "application/json", text, (size_t)n);
        return;
    }
    reply_json(&exchange->response, 202,
        json_pack("{s:I,s:I,s:o}", "accepted", (json_int_t)batch->n, "rejected",
            (json_int_t)batch->rejected, "errors", list_errors(batch)));
}

static void reply_rejected(
    struct http_exchange *exchange, const struct event_batch *batch, bool strict)
{
    problem_reply_errors(&exchange->response, PROBLEM_UNACCEPTABLE, list_errors(batch),
        strict && batch->n > 0 ? "%zu of the events are not acceptable, and strict was asked for"
                               : "none of the %zu events is acceptable",
        batch->rejected);
}

static void reply_malformed(struct http_exchange *exchange, const struct event_batch *batch)
{
    problem_reply(&exchange->response, PROBLEM_MALFORMED, "line %zu, column %zu: %s", batch->line,
        batch->column, batch->detail);
}

/* A token that is bound to sites may write to no other: then nothing of the request is counted.
 * False: the response says so. */
static bool may_write(struct http_exchange *exchange, const struct event_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        if (i > 0 && slice_equal(batch->events[i].site, batch->events[i - 1].site)) {
            continue;
        }
        if (!access_site(exchange, batch->events[i].site)) {
            return false;
        }
    }
    return true;
}

/* ---- the life of a request ---- */

/* False: the response says why. */
static bool decode(struct http_exchange *exchange, enum event_body form, struct event_batch *batch)
{
    const struct app *app = exchange->app;
    struct http_request *request = &exchange->request;
    int64_t now_s = request->now_ms / 1000;
    struct event_rules rules = {
        .now_s = now_s,
        .latest_s = now_s + app->max_future_s,
        .oldest_s = storage_oldest_s(app->storage, now_s),
        .max_events = app->max_events,
    };
    switch (event_json_decode(request->body_bytes, request->body.n, form, &rules, batch)) {
    case EVENT_JSON_OK:
        return true;
    case EVENT_JSON_MALFORMED:
        count(&app->stats->rejected_malformed, 1);
        reply_malformed(exchange, batch);
        return false;
    case EVENT_JSON_TOO_MANY:
        count(&app->stats->rejected_too_many, 1);
        problem_reply(&exchange->response, PROBLEM_TOO_LARGE,
            "a request may bring at most %zu events", app->max_events);
        return false;
    case EVENT_JSON_NOMEM:
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return false;
    }
    return false;
}

enum handler_result events_start(struct http_exchange *exchange)
{
    enum event_body form;
    bool strict;
    if (!read_form(exchange, &form) || !read_strict(exchange, &strict)) {
        return HANDLER_REPLY;
    }
    if (exchange->request.now_ms ==
        0) { /* Redis was never seen: its clock gives the time of arrival */
        problem_from_storage(&exchange->response, STORAGE_DOWN, NULL);
        return HANDLER_REPLY;
    }
    if (!ingest_guard_open(exchange, exchange->request.body.n)) {
        return HANDLER_REPLY;
    }
    struct events_state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return HANDLER_REPLY;
    }
    struct event_batch *batch = &state->batch;
    event_batch_init(batch);
    exchange->state = state;
    exchange->release = release;
    if (!decode(exchange, form, batch)) {
        return HANDLER_REPLY;
    }
    count(&exchange->app->stats->rejected_invalid, batch->rejected);
    if (batch->rejected > 0 && (strict || batch->n == 0)) {
        count(&exchange->app->stats->rejected_strict, batch->n);
        reply_rejected(exchange, batch, strict);
        return HANDLER_REPLY;
    }
    if (!may_write(exchange, batch)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_WRITE;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    exchange->job.u.write = (struct write_job){.events = batch->events, .n = batch->n};
    if (!ingest_guard_admit(exchange, &state->guard, batch->events, batch->n)) {
        return HANDLER_REPLY;
    }
    if (batch->n > 0) {
        return HANDLER_WAIT;
    }
    reply_accepted(exchange, batch);
    ingest_guard_headers(exchange, &state->guard);
    return HANDLER_REPLY;
}

void events_finish(struct http_exchange *exchange)
{
    const struct events_state *state = exchange->state;
    struct app_stats *stats = exchange->app->stats;
    if (exchange->job.err == STORAGE_OK) {
        count(&stats->events_accepted, state->batch.n);
        reply_accepted(exchange, &state->batch);
        ingest_guard_headers(exchange, &state->guard);
        return;
    }
    if (exchange->job.err == STORAGE_LIMITED) {
        ingest_guard_refused(exchange);
        return;
    }
    count(exchange->job.err == STORAGE_UNKNOWN ? &stats->rejected_unknown
                                               : &stats->rejected_unavailable,
        1);
    problem_from_storage(&exchange->response, exchange->job.err, exchange->job.detail);
}
