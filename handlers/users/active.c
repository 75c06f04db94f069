/* active.c - GET /dau and GET /active: how many users were active on some days. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/question/date_params.h"
#include "handlers/question/question.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"

static const struct param_spec dau_specs[] = {
    {"site", false}, {"action", false}, {"date", false}, {"from", false}, {"to", false}};
static const struct param_spec active_specs[] = {
    {"site", false}, {"action", true}, {"from", false}, {"to", false}, {"match", false}};

static const struct csv_shape dau_rows = {"series", {"site", "action", "date", "users"}};

struct activity_state {
    struct date_params asked;
    struct activity_days window;
    bool series;
    bool all;
    struct activity_days *sets; /* owned */
    struct activity_count *counts;
};

static void release(struct http_exchange *exchange)
{
    struct activity_state *state = exchange->state;
    date_params_release(&state->asked);
    free(state->sets);
    free(state->counts);
    free(state);
}

/* NULL: the response says why. */
static struct activity_state *begin(
    struct http_exchange *exchange, const struct param_spec *specs, size_t n_specs)
{
    struct activity_state *state = question_begin(exchange, sizeof(*state), release);
    return state != NULL && date_params_read(exchange, specs, n_specs, &state->asked) ? state
                                                                                      : NULL;
}

/* Fill the job: how many users are in each of the @n sets? */
static enum handler_result ask(
    struct http_exchange *exchange, struct activity_state *state, size_t n)
{
    state->counts = calloc(n + 1, sizeof(*state->counts));
    if (state->counts == NULL) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return HANDLER_REPLY;
    }
    for (size_t i = 0; i < n; i++) {
        state->counts[i] = (struct activity_count){.a = (uint32_t)i, .b = (uint32_t)i};
    }
    exchange->job.op = STORAGE_ACTIVITY;
    exchange->job.u.activity = (struct activity_job){
        .who = {.site = state->asked.site,
            .actions = state->asked.actions,
            .n_actions = state->asked.n_actions,
            .all = state->all},
        .sets = state->sets,
        .n_sets = n,
        .counts = state->counts,
        .n_counts = n,
    };
    return HANDLER_WAIT;
}

/* Read one date, or a window whose days are answered one by one. */
static bool read_days(struct http_exchange *exchange, struct activity_state *state)
{
    struct slice ignored;
    const struct params *params = &state->asked.params;
    bool date = params_get(params, "date", &ignored);
    state->series = params_get(params, "from", &ignored) || params_get(params, "to", &ignored);
    if (date && state->series) {
        return query_refuse(exchange, "date", "either date, or from and to");
    }
    if (state->series) {
        return date_params_window(exchange, &state->asked, 1, &state->window);
    }
    state->window =
        (struct activity_days){.first = date_params_today(exchange, &state->asked), .n = 1};
    return date_params_date(exchange, &state->asked, "date", &state->window.first);
}

enum handler_result dau_start(struct http_exchange *exchange)
{
    struct activity_state *state =
        begin(exchange, dau_specs, sizeof(dau_specs) / sizeof(dau_specs[0]));
    if (state == NULL || !read_days(exchange, state)) {
        return HANDLER_REPLY;
    }
    state->sets = calloc(state->window.n, sizeof(*state->sets));
    if (state->sets == NULL) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return HANDLER_REPLY;
    }
    for (size_t i = 0; i < state->window.n; i++) {
        state->sets[i] = (struct activity_days){.first = state->window.first + (int64_t)i, .n = 1};
    }
    return ask(exchange, state, state->window.n);
}

static json_t *series_json(const struct activity_state *state)
{
    json_t *series = json_array();
    for (size_t i = 0; series != NULL && i < state->window.n; i++) {
        json_array_append_new(
            series, json_pack("{s:o,s:I}", "date", date_json(state->sets[i].first), "users",
                        (json_int_t)state->counts[i].users));
    }
    return series;
}

void dau_finish(struct http_exchange *exchange)
{
    const struct activity_state *state = exchange->state;
    if (exchange->job.err != STORAGE_OK) {
        date_params_failed(
            exchange, state->series ? "from" : "date", exchange->job.u.activity.oldest_day);
        return;
    }
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(state->asked.site));
    json_object_set_new(root, "action", text_json(state->asked.actions[0]));
    if (state->series) {
        json_object_set_new(root, "from", date_json(state->window.first));
        json_object_set_new(root, "to", date_json(state->window.first + (int64_t)state->window.n));
        json_object_set_new(root, "series", series_json(state));
    } else {
        json_object_set_new(root, "date", date_json(state->window.first));
        json_object_set_new(root, "users", json_integer((json_int_t)state->counts[0].users));
    }
    csv_reply(exchange, 200, root, &dau_rows);
}

enum handler_result active_start(struct http_exchange *exchange)
{
    struct activity_state *state =
        begin(exchange, active_specs, sizeof(active_specs) / sizeof(active_specs[0]));
    if (state == NULL || !date_params_match(exchange, &state->asked, &state->all) ||
        !date_params_window(exchange, &state->asked, 1, &state->window)) {
        return HANDLER_REPLY;
    }
    state->sets = calloc(1, sizeof(*state->sets));
    if (state->sets == NULL) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return HANDLER_REPLY;
    }
    state->sets[0] = state->window;
    return ask(exchange, state, 1);
}

static json_t *actions_json(const struct date_params *asked)
{
    json_t *actions = json_array();
    for (size_t i = 0; actions != NULL && i < asked->n_actions; i++) {
        json_array_append_new(actions, text_json(asked->actions[i]));
    }
    return actions;
}

void active_finish(struct http_exchange *exchange)
{
    const struct activity_state *state = exchange->state;
    if (exchange->job.err != STORAGE_OK) {
        date_params_failed(exchange, "from", exchange->job.u.activity.oldest_day);
        return;
    }
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(state->asked.site));
    json_object_set_new(root, "actions", actions_json(&state->asked));
    json_object_set_new(root, "match", json_string(state->all ? "all" : "any"));
    json_object_set_new(root, "from", date_json(state->window.first));
    json_object_set_new(root, "to", date_json(state->window.first + (int64_t)state->window.n));
    json_object_set_new(root, "users", json_integer((json_int_t)state->counts[0].users));
    reply_json(&exchange->response, 200, root);
}
