/* events.c - POST /events: page views in.
 *
 * start() decodes and checks the body.  Storage writes the events that are acceptable.  finish()
 * answers 202, with the events that were rejected, once storage says that the others are durable.
 */
#include "handlers/routes.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/ingest/event_json.h"
#include "handlers/ingest/idempotency.h"
#include "handlers/ingest/ingest_guard.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/media_type.h"
#include "handlers/text/params.h"
#include "storage/base/buffer.h"

static const struct param_spec specs[] = {{"strict", false}};

struct events_state {
    struct event_batch batch;
    struct ingest_guard guard;
    enum event_body form;
    bool strict;
    bool keyed; /* the request has an Idempotency-Key */
    bool decoded;
    struct request_key key;
};

static void release(struct http_exchange *exchange)
{
    struct events_state *state = exchange->state;
    event_batch_release(&state->batch);
    ingest_guard_release(&state->guard);
    request_key_release(&state->key);
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
    *ret = false;
    if (exchange->request.query.n == 0) {
        return true;
    }
    struct params params = {0};
    bool ok = query_read(exchange, specs, 1, &params) &&
              (params_flag(&params, "strict", ret) ||
                  query_refuse(exchange, "strict", PARAMS_FLAG_DETAIL));
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
        static const char before[] = "{\"accepted\":", behind[] = ",\"rejected\":0,\"errors\":[]}";
        char text[sizeof(before) + 20 + sizeof(behind)];
        size_t n = sizeof(before) - 1;
        memcpy(text, before, n);
        n += decimal_print((int64_t)batch->n, text + n);
        memcpy(text + n, behind, sizeof(behind) - 1);
        reply_text(&exchange->response, 202, "application/json", text, n + sizeof(behind) - 1);
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

static void refuse_site(struct http_exchange *exchange, struct slice site)
{
    json_t *detail = json_sprintf("the token is not for site %.*s", (int)site.n, site.p);
    problem_reply_errors(&exchange->response, PROBLEM_FORBIDDEN,
        json_pack("[{s:s,s:o?}]", "pointer", "/site", "detail", detail),
        "site: the token is not for site %.*s", (int)site.n, site.p);
}

/* May the token write to the sites of all events?  False: nothing of the request is counted, and
 * the response says so. */
static bool may_write(struct http_exchange *exchange, const struct event_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        if (i > 0 && slice_equal(batch->events[i].site, batch->events[i - 1].site)) {
            continue;
        }
        if (!access_has_site(exchange, batch->events[i].site)) {
            refuse_site(exchange, batch->events[i].site);
            return false;
        }
    }
    return true;
}

/* ---- the life of a request ---- */

static struct event_rules rules_at(const struct app *app, int64_t now_s)
{
    return (struct event_rules){
        .now_s = now_s,
        .latest_s = now_s + app->max_future_s,
        .oldest_s = storage_oldest_s(app->storage, now_s),
        .max_events = app->max_events,
    };
}

/* False: the response says why. */
static bool decode(struct http_exchange *exchange, enum event_body form, struct event_batch *batch)
{
    const struct app *app = exchange->app;
    struct http_request *request = &exchange->request;
    struct event_rules rules = rules_at(app, request->now_ms / 1000);
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

/* Are there events, or is strictness, that reject the whole request? */
static bool is_rejected(const struct events_state *state)
{
    return state->batch.rejected > 0 && (state->strict || state->batch.n == 0);
}

/* Count what was rejected, once it is known that the request is no repeat. */
static void count_rejected(const struct http_exchange *exchange, const struct events_state *state)
{
    struct app_stats *stats = exchange->app->stats;
    if (state->decoded) {
        count(&stats->rejected_invalid, state->batch.rejected);
        count(&stats->rejected_strict, is_rejected(state) ? state->batch.n : 0);
    }
}

/* Decode the events, check them and fill the job.  HANDLER_REPLY: the response says what is wrong,
 * or that there was nothing to do. */
static enum handler_result prepare(struct http_exchange *exchange)
{
    struct events_state *state = exchange->state;
    struct event_batch *batch = &state->batch;
    if (!decode(exchange, state->form, batch)) {
        return HANDLER_REPLY;
    }
    state->decoded = true;
    if (is_rejected(state)) {
        reply_rejected(exchange, batch, state->strict);
        ingest_guard_tell(exchange, batch->events, batch->n);
        return HANDLER_REPLY;
    }
    if (!may_write(exchange, batch)) {
        return HANDLER_REPLY;
    }
    /* The answer is made before anything is sent: once the request is in the log, memory must not
     * run out. */
    reply_accepted(exchange, batch);
    if (exchange->response.status != 202) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_WRITE;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    state->key.answer = (struct slice){exchange->response.body, exchange->response.body_n};
    exchange->job.u.write = (struct write_job){
        .events = batch->events, .n = batch->n, .keyed = state->keyed ? &state->key : NULL};
    if (!ingest_guard_admit(exchange, &state->guard, batch->events, batch->n)) {
        return HANDLER_REPLY;
    }
    if (batch->n == 0 && !state->keyed) {
        ingest_guard_headers(exchange, &state->guard);
        return HANDLER_REPLY;
    }
    return HANDLER_WAIT;
}

/* False: the response says why. */
static bool read_key(struct http_exchange *exchange, struct events_state *state)
{
    const struct http_request *request = &exchange->request;
    char key[IDEMPOTENCY_KEY_MAX];
    size_t n = 0;
    switch (idempotency_key_read(request, key, &n)) {
    case IDEMPOTENCY_NONE:
        return true;
    case IDEMPOTENCY_MALFORMED:
        problem_reply(&exchange->response, PROBLEM_MALFORMED, IDEMPOTENCY_DETAIL);
        return false;
    case IDEMPOTENCY_KEY:
        break;
    }
    struct slice owner = {NULL, 0}; /* without tokens all keys lie in one space */
    if (exchange->access != NULL) {
        owner =
            (struct slice){(const char *)exchange->access->hash, sizeof(exchange->access->hash)};
    }
    uint64_t how = (state->form == EVENT_BODY_NDJSON ? 1u : 0u) | (state->strict ? 2u : 0u);
    state->keyed = true;
    state->key.key = request_key_digest(owner, (struct slice){key, n});
    state->key.body = request_body_digest(how, request->body);
    return true;
}

/* Ask whether the key was used before. */
static void look_key(struct http_exchange *exchange, struct events_state *state)
{
    exchange->job.op = STORAGE_LOOK_KEY;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    exchange->job.u.look_key = &state->key;
}

enum handler_result events_start(struct http_exchange *exchange)
{
    struct events_state fresh = {0};
    if (!read_form(exchange, &fresh.form) || !read_strict(exchange, &fresh.strict) ||
        !read_key(exchange, &fresh)) {
        return HANDLER_REPLY;
    }
    /* Redis, whose clock gives the time of arrival, was never seen. */
    if (exchange->request.now_ms == 0) {
        problem_from_storage(&exchange->response, STORAGE_DOWN, NULL);
        return HANDLER_REPLY;
    }
    /* (A repeat of what was counted gets its answer, also over the limit.) */
    if (!fresh.keyed && !ingest_guard_open(exchange, exchange->request.body.n)) {
        return HANDLER_REPLY;
    }
    struct events_state *state = malloc(sizeof(*state));
    if (state == NULL) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return HANDLER_REPLY;
    }
    *state = fresh;
    event_batch_init(&state->batch);
    exchange->state = state;
    exchange->release = release;
    if (!state->keyed) {
        enum handler_result result = prepare(exchange);
        count_rejected(exchange, state);
        return result;
    }
    /* A repeat gets its first answer, also where it is over the limit now, or too old.  So the key
     * is looked for before the guard is asked, and before anything but a 202 is answered.  Else
     * storage finds a repeat when it writes. */
    if (exchange->app->guard_by != GUARD_OFF || prepare(exchange) == HANDLER_REPLY) {
        look_key(exchange, state);
    }
    return HANDLER_WAIT;
}

/* ---- with a key ---- */

/* Tell a repeat what is left of the limit; it takes nothing.  Where sites are limited the events
 * must be decoded, because they say which sites. */
static void tell_repeat(struct http_exchange *exchange, struct events_state *state)
{
    const struct http_request *request = &exchange->request;
    struct event_batch *batch = &state->batch;
    if (exchange->app->guard_by == GUARD_SITE) {
        struct event_rules rules = rules_at(exchange->app, request->now_ms / 1000);
        bool whole = event_json_decode(request->body_bytes, request->body.n, state->form, &rules,
                         batch) == EVENT_JSON_OK;
        ingest_guard_tell(exchange, batch->events, whole ? batch->n : 0);
    }
}

/* The key was used before: what was answered then, in place of an answer that is there already. */
static void reply_repeat(struct http_exchange *exchange, struct events_state *state)
{
    reply_empty(&exchange->response, 0);
    idempotency_reply(&exchange->response, &state->key);
    if (!state->decoded) {
        tell_repeat(exchange, state);
    }
}

static void reply_failed(struct http_exchange *exchange)
{
    struct app_stats *stats = exchange->app->stats;
    enum storage_err err = exchange->job.err;
    count(err == STORAGE_UNKNOWN ? &stats->rejected_unknown : &stats->rejected_unavailable, 1);
    problem_from_storage(&exchange->response, err, exchange->job.detail);
}

/* It is known whether the key was used. */
static void looked(struct http_exchange *exchange, struct events_state *state)
{
    if (exchange->job.err != STORAGE_OK) {
        reply_failed(exchange);
    } else if (state->key.outcome != KEY_FREE) {
        reply_repeat(exchange, state);
    } else if (exchange->response.status != 0) { /* the request is refused already */
        count_rejected(exchange, state);
    } else {
        exchange->again = prepare(exchange) == HANDLER_WAIT;
        if (!exchange->again) {
            count_rejected(exchange, state);
        }
    }
}

void events_finish(struct http_exchange *exchange)
{
    struct events_state *state = exchange->state;
    if (exchange->job.op == STORAGE_LOOK_KEY) {
        looked(exchange, state);
        return;
    }
    if (exchange->job.err == STORAGE_LIMITED) {
        ingest_guard_refused(exchange);
    } else if (exchange->job.err != STORAGE_OK) {
        reply_failed(exchange);
    } else if (state->keyed && state->key.outcome != KEY_MINE) {
        reply_repeat(exchange, state);
    } else {
        count(&exchange->app->stats->events_accepted, state->batch.n);
        if (state->keyed) {
            count_rejected(exchange, state);
        }
        ingest_guard_headers(exchange, &state->guard);
    }
}
