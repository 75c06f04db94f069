#include "handlers/ingest/ingest_guard.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/access/client.h"
#include "handlers/http/app.h"
#include "handlers/limit/limit_reply.h"
#include "handlers/reply/problem.h"

#define EVENT_LEAST 12 /* bytes of the shortest event: {"page":"/"} */

static void refuse(struct http_exchange *exchange, const struct limit_state *state)
{
    const struct app *app = exchange->app;
    app_stats_add(&app->stats->rejected_limited, 1);
    limit_reply_refused(&exchange->response, LIMIT_NAME_GUARD, &app->guard_limit, state, NULL);
}

/* Who is limited, where that does not depend on the events: the client's address, which is written
 * to @address, or the name of the token. */
static struct slice who(const struct http_exchange *exchange, struct event_address *address)
{
    if (exchange->app->guard_by == GUARD_IP) {
        *address = client_address(exchange);
        return (struct slice){(const char *)address->bytes, address->len};
    }
    return exchange->access != NULL ? slice_of(exchange->access->name) : SLICE("");
}

bool ingest_guard_open(struct http_exchange *exchange, size_t body_n)
{
    const struct app *app = exchange->app;
    struct event_address address;
    struct limit_state state;
    if (app->guard_by == GUARD_OFF || app->guard_by == GUARD_SITE || body_n < EVENT_LEAST ||
        body_n / EVENT_LEAST > (size_t)limit_capacity(&app->guard_limit)) {
        return true;
    }
    if (!storage_guard_closed(app->storage, who(exchange, &address), &state)) {
        return true;
    }
    refuse(exchange, &state);
    return false;
}

/* ---- charges ---- */

static int by_site(const void *a, const void *b)
{
    return slice_compare(
        ((const struct guard_charge *)a)->who, ((const struct guard_charge *)b)->who);
}

/* Make one charge for each site of the events.  False: out of memory. */
static bool charge_sites(struct ingest_guard *guard, const struct event *events, size_t n)
{
    size_t same = 1;
    while (same < n && slice_equal(events[same].site, events[0].site)) {
        same++;
    }
    if (same >= n) {
        guard->one = (struct guard_charge){n > 0 ? events[0].site : SLICE(""), (int64_t)n};
        guard->n_charges = n > 0;
        return true;
    }
    struct guard_charge *charges = malloc(n * sizeof(*charges));
    if (charges == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        charges[i] = (struct guard_charge){events[i].site, 1};
    }
    qsort(charges, n, sizeof(*charges), by_site);
    size_t last = 0;
    for (size_t i = 1; i < n; i++) {
        if (slice_equal(charges[i].who, charges[last].who)) {
            charges[last].n++;
        } else {
            charges[++last] = charges[i];
        }
    }
    guard->charges = charges;
    guard->n_charges = last + 1;
    return true;
}

static bool make_charges(const struct http_exchange *exchange, struct ingest_guard *guard,
    const struct event *events, size_t n)
{
    guard->charges = &guard->one;
    if (exchange->app->guard_by == GUARD_SITE) {
        return charge_sites(guard, events, n);
    }
    guard->one = (struct guard_charge){who(exchange, &guard->address), (int64_t)n};
    guard->n_charges = 1;
    return true;
}

bool ingest_guard_admit(struct http_exchange *exchange, struct ingest_guard *guard,
    const struct event *events, size_t n)
{
    const struct app *app = exchange->app;
    enum guard_verdict verdict = GUARD_FAILED;
    if (app->guard_by == GUARD_OFF) {
        return true;
    }
    if (make_charges(exchange, guard, events, n)) {
        if (guard->n_charges == 0) {
            return true;
        }
        verdict = storage_guard_try(app->storage, guard->charges, guard->n_charges, &guard->state);
    }
    switch (verdict) {
    case GUARD_ADMITTED:
        guard->told = true;
        return true;
    case GUARD_ASK:
        exchange->job.u.write.charges = guard->charges;
        exchange->job.u.write.n_charges = guard->n_charges;
        return true;
    case GUARD_REFUSED:
        refuse(exchange, &guard->state);
        return false;
    case GUARD_FAILED:
        break;
    }
    return problem_no_memory(&exchange->response);
}

void ingest_guard_headers(struct http_exchange *exchange, const struct ingest_guard *guard)
{
    const struct write_job *write = &exchange->job.u.write;
    if (guard->told) {
        limit_reply_headers(
            &exchange->response, LIMIT_NAME_GUARD, &exchange->app->guard_limit, &guard->state);
    } else if (exchange->job.op == STORAGE_WRITE && write->n_charges > 0) {
        limit_reply_headers(
            &exchange->response, LIMIT_NAME_GUARD, &exchange->app->guard_limit, &write->guard);
    }
}

void ingest_guard_refused(struct http_exchange *exchange)
{
    refuse(exchange, &exchange->job.u.write.guard);
}

/* Find out what is left of the limit: of the client, of the token, or of that site of @events which
 * has least left. */
static void peek(const struct http_exchange *exchange, const struct event *events, size_t n,
    struct limit_state *ret_state)
{
    struct storage *storage = exchange->app->storage;
    struct event_address address;
    if (exchange->app->guard_by != GUARD_SITE) {
        storage_guard_peek(storage, who(exchange, &address), ret_state);
        return;
    }
    const struct access *access = exchange->access;
    struct slice site =
        access != NULL && access->n_sites > 0 ? access->sites[0] : EVENT_SITE_DEFAULT;
    storage_guard_peek(storage, n > 0 ? events[0].site : site, ret_state);
    for (size_t i = 1; i < n; i++) {
        struct limit_state one;
        if (slice_equal(events[i].site, events[i - 1].site)) {
            continue;
        }
        storage_guard_peek(storage, events[i].site, &one);
        if (one.remaining < ret_state->remaining) {
            *ret_state = one;
        }
    }
}

void ingest_guard_tell(struct http_exchange *exchange, const struct event *events, size_t n)
{
    const struct app *app = exchange->app;
    struct limit_state state;
    if (app->guard_by != GUARD_OFF) {
        peek(exchange, events, n, &state);
        state.allowed = true; /* no request was refused by this limit */
        limit_reply_headers(&exchange->response, LIMIT_NAME_GUARD, &app->guard_limit, &state);
    }
}

bool ingest_guard_foretell(struct http_exchange *exchange, const struct event *events, size_t n)
{
    const struct app *app = exchange->app;
    struct event_address address;
    struct limit_state state;
    bool closed = false;
    for (size_t i = 0; app->guard_by != GUARD_OFF && i < n && !closed; i++) {
        closed = storage_guard_closed(app->storage,
            app->guard_by == GUARD_SITE ? events[i].site : who(exchange, &address), &state);
    }
    if (closed) {
        limit_reply_refused(&exchange->response, LIMIT_NAME_GUARD, &app->guard_limit, &state, NULL);
    } else {
        ingest_guard_tell(exchange, events, n);
    }
    return !closed;
}

void ingest_guard_dress(struct http_exchange *exchange)
{
    if (exchange->app->guard_by != GUARD_OFF && !limit_reply_told(&exchange->response)) {
        ingest_guard_tell(exchange, NULL, 0);
    }
}

void ingest_guard_release(struct ingest_guard *guard)
{
    if (guard->charges != &guard->one) {
        free(guard->charges);
    }
    guard->charges = NULL;
}
