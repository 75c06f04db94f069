/* events.c - POST /events: a batch of page views, named events and activity of users.
 *
 * start() decodes and checks the body.  Storage appends the events that are acceptable.  finish()
 * answers 202, with the events that were rejected, once storage says that the others are durable.
 */
#include "handlers/routes.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/ingest/events_query.h"
#include "handlers/ingest/events_reply.h"
#include "handlers/ingest/idempotency.h"
#include "handlers/ingest/ingest_guard.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/state.h"

struct events_state {
    struct event_batch batch;
    struct site_sums sites;
    struct ingest_guard guard;
    struct events_query query;
    bool keyed;   /* the request has an Idempotency-Key, or dedupe=body makes one */
    bool decoded; /* batch has what became of the body */
    struct request_key key;
    struct key_digest ticket; /* that of the request, if it has first=1 */
};

static void release(struct http_exchange *exchange)
{
    struct events_state *state = exchange->state;
    event_batch_release(&state->batch);
    site_sums_release(&state->sites);
    ingest_guard_release(&state->guard);
    request_key_release(&state->key);
    free(state);
}

/* May the token write to the sites of all events, dropped ones too?  False: nothing of the request
 * is counted, and the response says so. */
static bool may_write(struct http_exchange *exchange, const struct event_batch *batch)
{
    if (batch->foreign.n > 0) {
        events_reply_forbidden(&exchange->response, batch->foreign);
        return false;
    }
    for (size_t i = 0; i < batch->n; i++) {
        if (i > 0 && slice_equal(batch->events[i].site, batch->events[i - 1].site)) {
            continue;
        }
        if (!access_has_site(exchange, batch->events[i].site)) {
            events_reply_forbidden(&exchange->response, batch->events[i].site);
            return false;
        }
    }
    return true;
}

/* ---- which actions were first ---- */

/* Answer 504: the request counts, but it is not known which of its actions were first.  A client
 * that sends the request again, with the same key, is told. */
static void reply_first_failed(struct http_exchange *exchange)
{
    exchange->job.detail[0] = '\0';
    events_reply_failed(exchange, STORAGE_UNKNOWN);
}

/* Add to the response, a 202, which actions were first. */
static void reply_first(struct http_exchange *exchange, const struct first_event *found, size_t n)
{
    if (!events_reply_add_first(&exchange->response, found, n)) {
        reply_first_failed(exchange);
    }
}

/* Fill a job that reads which actions were first; the response says the rest already.  @batch: NULL
 * for a repeat, because other rules may hold for its events now. */
static void read_first(
    struct http_exchange *exchange, struct events_state *state, const struct event_batch *batch)
{
    exchange->job.op = STORAGE_FIRST;
    exchange->job.u.first = (struct first_job){.ticket = state->ticket};
    if (batch != NULL) {
        exchange->job.u.first.events = batch->events;
        exchange->job.u.first.n = batch->n;
    }
    exchange->again = true;
}

static bool any_asks(const struct event_batch *batch)
{
    bool any = false;
    for (size_t i = 0; i < batch->n && !any; i++) {
        any = first_event_asks(&batch->events[i]);
    }
    return any;
}

static void finish_first(struct http_exchange *exchange)
{
    const struct first_job *first = &exchange->job.u.first;
    if (exchange->job.err != STORAGE_OK) {
        reply_first_failed(exchange);
    } else {
        reply_first(exchange, first->found, first->n_found);
    }
}

/* ---- the life of a request ---- */

/* Decode the body into state->batch.  False: the response says why not. */
static bool decode(struct http_exchange *exchange, struct events_state *state)
{
    const struct app *app = exchange->app;
    struct http_request *request = &exchange->request;
    struct event_batch *batch = &state->batch;
    struct event_rules rules = events_query_rules(&state->query, app, request->now_ms / 1000);
    rules.may_write = access_has_site;
    rules.sender = exchange;
    switch (
        event_json_decode(request->body_bytes, request->body.n, state->query.form, &rules, batch)) {
    case EVENT_JSON_OK:
        return true;
    case EVENT_JSON_MALFORMED:
        app_stats_add(&app->stats->rejected_malformed, 1);
        events_reply_malformed(&exchange->response, batch);
        return false;
    case EVENT_JSON_TOO_MANY:
        app_stats_add(&app->stats->rejected_too_many, 1);
        problem_reply(&exchange->response, PROBLEM_TOO_LARGE,
            "a request may bring at most %zu events", app->max_events);
        return false;
    case EVENT_JSON_NOMEM:
        return problem_no_memory(&exchange->response);
    }
    return false;
}

/* Is the whole request rejected?  Either no event is acceptable, or a bad event takes all others
 * with it. */
static bool is_rejected(const struct events_state *state)
{
    const struct event_batch *batch = &state->batch;
    return batch->rejected > 0 &&
           (state->query.strict || batch->untimed || batch->n + batch->dropped == 0);
}

static void count_counted(const struct http_exchange *exchange, const struct events_state *state)
{
    struct app_stats *stats = exchange->app->stats;
    const struct event_batch *batch = &state->batch;
    app_stats_add(&stats->events_accepted, batch->n);
    site_sums_count(&state->sites);
    if (batch->dropped > 0) {
        app_stats_add(&stats->dropped_robot, batch->dropped_robots);
        app_stats_add(&stats->dropped_ignored, batch->dropped - batch->dropped_robots);
    }
}

/* Count the events that were rejected, once it is known that the request is no repeat. */
static void count_rejected(const struct http_exchange *exchange, const struct events_state *state)
{
    struct app_stats *stats = exchange->app->stats;
    if (state->decoded) {
        app_stats_add(&stats->rejected_invalid, state->batch.rejected);
        app_stats_add(&stats->rejected_strict, is_rejected(state) ? state->batch.n : 0);
    }
}

/* Storage has read the events: free them, and the body that they lie in, while they wait to be
 * appended.  They stay if they are needed later: with first=1, or if the guard asks Redis, because
 * its charges may point into the body. */
static void on_read(struct storage_job *job)
{
    struct http_exchange *exchange =
        (struct http_exchange *)((char *)job - offsetof(struct http_exchange, job));
    struct events_state *state = exchange->state;
    if (!state->query.first && job->u.write.n_charges == 0) {
        job->u.write.events = NULL;
        event_batch_forget(&state->batch);
        exchange->drop_body(exchange);
    }
}

/* Decode the events, check them and fill the job.  HANDLER_REPLY: the response says what is wrong,
 * or that there was nothing to append. */
static enum handler_result prepare(struct http_exchange *exchange)
{
    struct events_state *state = exchange->state;
    struct event_batch *batch = &state->batch;
    if (!decode(exchange, state)) {
        return HANDLER_REPLY;
    }
    state->decoded = true;
    if (is_rejected(state)) {
        events_reply_rejected(&exchange->response, batch, state->query.strict);
        ingest_guard_tell(exchange, batch->events, batch->n);
        return HANDLER_REPLY;
    }
    if (!may_write(exchange, batch)) {
        return HANDLER_REPLY;
    }
    /* The answer is made before anything is sent: once the request is appended, memory must not
     * run out. */
    events_reply_accepted(&exchange->response, batch);
    if (exchange->response.status != 202) {
        return HANDLER_REPLY;
    }
    if (!site_sums_take(exchange->app->site_stats, batch->events, batch->n, &state->sites)) {
        (void)problem_no_memory(&exchange->response);
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_WRITE;
    state->key.answer = (struct slice){exchange->response.body, exchange->response.body_n};
    exchange->job.u.write = (struct write_job){.events = batch->events,
        .n = batch->n,
        .read = on_read,
        .keyed = state->keyed ? &state->key : NULL,
        .ticket = state->query.first ? &state->ticket : NULL};
    if (!ingest_guard_admit(exchange, &state->guard, batch->events, batch->n)) {
        return HANDLER_REPLY;
    }
    if (batch->n == 0 && !state->keyed) {
        count_counted(exchange, state);
        ingest_guard_headers(exchange, &state->guard);
        if (state->query.first) {
            reply_first(exchange, NULL, 0);
        }
        return HANDLER_REPLY;
    }
    return HANDLER_WAIT;
}

/* Fill a job that asks whether the key was used before. */
static void look_key(struct http_exchange *exchange, struct events_state *state)
{
    exchange->job.op = STORAGE_LOOK_KEY;
    exchange->job.u.look_key = &state->key;
}

enum handler_result events_start(struct http_exchange *exchange)
{
    struct events_state fresh = {0};
    if (!events_query_read(exchange, &fresh.query) ||
        !idempotency_request_key(exchange, events_query_how(&fresh.query), fresh.query.key_of_body,
            &fresh.keyed, &fresh.key) ||
        !state_has_time(exchange)) {
        return HANDLER_REPLY;
    }
    /* With a key the guard is asked later: a repeat of what was counted gets its answer, also over
     * the limit. */
    if (!fresh.keyed && !events_query_may_drop(&fresh.query, exchange->app) &&
        !ingest_guard_open(exchange, exchange->request.body.n)) {
        return HANDLER_REPLY;
    }
    struct events_state *state = malloc(sizeof(*state));
    if (state == NULL) {
        (void)problem_no_memory(&exchange->response);
        return HANDLER_REPLY;
    }
    *state = fresh;
    if (state->query.first) {
        state->ticket = first_ticket(state->keyed ? &state->key : NULL);
    }
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

/* Tell the client of a repeat, which takes nothing from the limit, what is left.  Where sites are
 * limited the events must be decoded, because they say which sites. */
static void tell_repeat(struct http_exchange *exchange, struct events_state *state)
{
    const struct http_request *request = &exchange->request;
    struct event_batch *batch = &state->batch;
    if (exchange->app->guard_by == GUARD_SITE) {
        struct event_rules rules =
            events_query_rules(&state->query, exchange->app, request->now_ms / 1000);
        bool whole = event_json_decode(request->body_bytes, request->body.n, state->query.form,
                         &rules, batch) == EVENT_JSON_OK;
        ingest_guard_tell(exchange, batch->events, whole ? batch->n : 0);
    }
}

/* The key was used before: replace the answer by the one that was given then. */
static void reply_repeat(struct http_exchange *exchange, struct events_state *state)
{
    idempotency_reply(&exchange->response, 202, &state->key);
    if (!state->decoded) {
        tell_repeat(exchange, state);
    }
    if (state->query.first && exchange->response.status == 202) {
        read_first(exchange, state, NULL);
    }
}

/* Storage has looked for the key. */
static void looked(struct http_exchange *exchange, struct events_state *state)
{
    if (exchange->job.err != STORAGE_OK) {
        events_reply_failed(exchange, exchange->job.err);
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

/* The job that appends the events is done. */
static void written(struct http_exchange *exchange, struct events_state *state)
{
    if (exchange->job.err == STORAGE_LIMITED) {
        ingest_guard_refused(exchange);
    } else if (exchange->job.err != STORAGE_OK) {
        events_reply_failed(exchange, exchange->job.err);
    } else if (state->keyed && state->key.outcome != KEY_MINE) {
        reply_repeat(exchange, state);
    } else {
        count_counted(exchange, state);
        if (state->keyed) {
            count_rejected(exchange, state);
        }
        ingest_guard_headers(exchange, &state->guard);
        if (state->query.first && any_asks(&state->batch)) {
            read_first(exchange, state, &state->batch);
        } else if (state->query.first) {
            reply_first(exchange, NULL, 0);
        }
    }
}

void events_finish(struct http_exchange *exchange)
{
    struct events_state *state = exchange->state;
    if (exchange->job.op == STORAGE_LOOK_KEY) {
        looked(exchange, state);
    } else if (exchange->job.op == STORAGE_FIRST) {
        finish_first(exchange);
    } else {
        written(exchange, state);
    }
}
