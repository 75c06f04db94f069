#include "handlers/ingest/events_query.h"

#include "handlers/http/app.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/text/plain.h"

static const struct param_spec specs[] = {
    {"strict", false}, {"bots", false}, {"dedupe", false}, {"first", false}};

static bool read_form(struct http_exchange *exchange, enum event_body *ret)
{
    struct slice type = exchange->request.fields[FIELD_CONTENT_TYPE];
    if (type.n == 0 || text_is_media_type(type, "application/json")) {
        *ret = EVENT_BODY_JSON;
        return true;
    }
    if (text_is_media_type(type, "application/x-ndjson")) {
        *ret = EVENT_BODY_NDJSON;
        return true;
    }
    problem_reply(&exchange->response, PROBLEM_MEDIA_TYPE,
        "Content-Type must be application/json or application/x-ndjson");
    return false;
}

/* Read bots.  False: the response says what is wrong. */
static bool read_bots(
    struct http_exchange *exchange, const struct params *params, enum events_bots *ret)
{
    struct slice text;
    if (!params_get(params, "bots", &text)) {
        return true;
    }
    *ret = slice_equal(text, SLICE("drop")) ? EVENTS_BOTS_DROP : EVENTS_BOTS_COUNT;
    return *ret == EVENTS_BOTS_DROP || slice_equal(text, SLICE("count")) ||
           query_refuse(exchange, "bots", "must be drop or count");
}

static bool read_dedupe(struct http_exchange *exchange, const struct params *params, bool *ret)
{
    struct slice text;
    *ret = params_get(params, "dedupe", &text);
    return !*ret || slice_equal(text, SLICE("body")) ||
           query_refuse(exchange, "dedupe", "must be body");
}

bool events_query_read(struct http_exchange *exchange, struct events_query *ret)
{
    struct params params = {0};
    *ret = (struct events_query){0};
    if (!read_form(exchange, &ret->form)) {
        return false;
    }
    bool ok = query_read(exchange, PARAM_SPECS(specs), &params) &&
              query_flag(exchange, &params, "strict", &ret->strict) &&
              query_flag(exchange, &params, "first", &ret->first) &&
              read_bots(exchange, &params, &ret->bots) &&
              read_dedupe(exchange, &params, &ret->key_of_body);
    params_release(&params);
    return ok;
}

uint64_t events_query_how(const struct events_query *query)
{
    return (query->form == EVENT_BODY_NDJSON ? 1u : 0u) | (query->strict ? 2u : 0u) |
           (unsigned)query->bots << 2 | (query->first ? 16u : 0u);
}

static bool drops_robots(const struct events_query *query, const struct app *app)
{
    return query->bots == EVENTS_BOTS_DROP ||
           (query->bots == EVENTS_BOTS_DEFAULT && app->drop_robots);
}

bool events_query_may_drop(const struct events_query *query, const struct app *app)
{
    return drops_robots(query, app) || app->n_ignored > 0;
}

struct event_rules events_query_rules(
    const struct events_query *query, const struct app *app, int64_t now_s)
{
    return (struct event_rules){
        .now_s = now_s,
        .latest_s = now_s + app->max_future_s,
        .oldest_s = storage_oldest_s(app->storage, now_s),
        .days_from_s = storage_days_from_s(app->storage, now_s),
        .zone_of = storage_site_zone,
        .max_events = app->max_events,
        .needs_time = query->key_of_body,
        .robots = drops_robots(query, app) ? app->robots : NULL,
        .ignored = app->ignored,
        .n_ignored = app->n_ignored,
        .app = app,
    };
}
