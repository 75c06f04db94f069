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

static const struct param_spec dau_specs[] = {{"site", false}, {"action", false}, {"date", false},
    {"from", false}, {"to", false}, {"new_within", false}};
static const struct param_spec active_specs[] = {
    {"site", false}, {"action", true}, {"from", false}, {"to", false}, {"match", false}};

static const struct csv_shape dau_rows = {"series", {"site", "action", "date", "users"}};
static const struct csv_shape new_rows = {"series", {"site", "action", "date", "users", "new"}};

struct activity_state {
    struct date_params asked;
    struct activity_days window;
    bool series;               /* each day of the window is answered */
    bool all;                  /* match=all */
    struct activity_set *sets; /* owned: the users of each day, then the new users of each day */
    size_t n_sets;
    struct activity_count *counts; /* owned: the size of each set */
};

static void release(struct http_exchange *exchange)
{
    struct activity_state *state = exchange->state;
    date_params_release(&state->asked);
    free(state->sets);
    free(state->counts);
    free(state);
}

/* Make the state, and read site and actions.  NULL: the response says what is wrong. */
static struct activity_state *begin(
    struct http_exchange *exchange, const struct param_spec *specs, size_t n_specs)
{
    struct activity_state *state = question_begin(exchange, sizeof(*state), release);
    return state != NULL && date_params_read(exchange, specs, n_specs, &state->asked) ? state
                                                                                      : NULL;
}

/* Make room for @n sets and their counts.  False: memory is out, and the response says so. */
static bool make_sets(struct http_exchange *exchange, struct activity_state *state, size_t n)
{
    state->sets = calloc(n, sizeof(*state->sets));
    state->counts = calloc(n, sizeof(*state->counts));
    state->n_sets = n;
    if (state->sets == NULL || state->counts == NULL) {
        return problem_no_memory(&exchange->response);
    }
    return true;
}

/* Fill the job: how many users are in each of the sets? */
static enum handler_result ask(struct http_exchange *exchange, struct activity_state *state)
{
    for (size_t i = 0; i < state->n_sets; i++) {
        state->counts[i] = (struct activity_count){.a = (uint32_t)i, .b = (uint32_t)i};
    }
    exchange->job.op = STORAGE_ACTIVITY;
    exchange->job.u.activity = (struct activity_job){
        .asked = date_params_question(&state->asked, state->sets, state->n_sets),
        .counts = state->counts,
        .n_counts = state->n_sets,
    };
    return HANDLER_WAIT;
}

/* Read one date, or a window whose days are answered one by one. */
static bool read_days(struct http_exchange *exchange, struct activity_state *state)
{
    const struct params *params = &state->asked.params;
    state->series = params_has(params, "from") || params_has(params, "to");
    if (state->series && params_has(params, "date")) {
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
    struct activity_state *state = begin(exchange, PARAM_SPECS(dau_specs));
    if (state == NULL || !read_days(exchange, state) ||
        !date_params_new_within(exchange, &state->asked) ||
        !date_params_bounded(exchange, "new_within", state->window.n + state->asked.new_days)) {
        return HANDLER_REPLY;
    }
    size_t n = state->window.n;
    bool new = state->asked.new_days > 0;
    if (!make_sets(exchange, state, new ? 2 * n : n)) {
        return HANDLER_REPLY;
    }
    for (size_t i = 0; i < n; i++) {
        struct activity_set *day = &state->sets[i];
        *day = (struct activity_set){
            .n_actions = 1, .days = {.first = state->window.first + (int64_t)i, .n = 1}};
        if (new) {
            day[n] = *day;
            day[n].only_new = true;
        }
    }
    return ask(exchange, state);
}

/* Put the figures of day @i into @object. */
static void put_users(json_t *object, const struct activity_state *state, size_t i)
{
    json_object_set_new(object, "users", json_integer((json_int_t)state->counts[i].users));
    if (state->asked.new_days > 0) {
        json_int_t n = (json_int_t)state->counts[state->window.n + i].users;
        json_object_set_new(object, "new", json_integer(n));
    }
}

static json_t *series_json(const struct activity_state *state)
{
    json_t *series = json_array();
    for (size_t i = 0; series != NULL && i < state->window.n; i++) {
        json_t *day = json_object();
        json_object_set_new(day, "date", date_json(state->sets[i].days.first));
        put_users(day, state, i);
        json_array_append_new(series, day);
    }
    return series;
}

void dau_finish(struct http_exchange *exchange)
{
    const struct activity_state *state = exchange->state;
    if (exchange->job.err != STORAGE_OK) {
        date_params_failed(exchange, state->series ? "from" : "date", state->window.first,
            exchange->job.u.activity.oldest_day);
        return;
    }
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(state->asked.site));
    json_object_set_new(root, "action", text_json(state->asked.actions[0]));
    date_params_put_new_within(root, &state->asked);
    if (state->series) {
        json_object_set_new(root, "from", date_json(state->window.first));
        json_object_set_new(root, "to", date_json(state->window.first + (int64_t)state->window.n));
        json_object_set_new(root, "series", series_json(state));
    } else {
        json_object_set_new(root, "date", date_json(state->window.first));
        put_users(root, state, 0);
    }
    csv_reply(exchange, 200, root, state->asked.new_days > 0 ? &new_rows : &dau_rows);
}

enum handler_result active_start(struct http_exchange *exchange)
{
    struct activity_state *state = begin(exchange, PARAM_SPECS(active_specs));
    if (state == NULL || !date_params_match(exchange, &state->asked, &state->all) ||
        !date_params_window(exchange, &state->asked, 1, &state->window) ||
        !make_sets(exchange, state, 1)) {
        return HANDLER_REPLY;
    }
    state->sets[0] = (struct activity_set){
        .n_actions = state->asked.n_actions, .days = state->window, .all = state->all};
    return ask(exchange, state);
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
    json_t *root = date_params_answer(
        exchange, &state->asked, &state->window, exchange->job.u.activity.oldest_day);
    if (root == NULL) {
        return;
    }
    json_object_set_new(root, "actions", actions_json(&state->asked));
    json_object_set_new(root, "match", json_string(state->all ? "all" : "any"));
    json_object_set_new(root, "users", json_integer((json_int_t)state->counts[0].users));
    reply_json(&exchange->response, 200, root);
}
