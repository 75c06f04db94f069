/* funnel.c - GET /funnel: how many users did the first of some actions, the first two, and so on.
 *
 * It is known on which days a user did an action, but not at what time.  So the steps have no
 * order: a user who did all of them on any days of the window counts.  The answer says so. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/question/date_params.h"
#include "handlers/question/question.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"

#define STEPS_MIN 2
#define STEPS_MAX 8

static const struct param_spec specs[] = {
    {"site", false}, {"step", true}, {"from", false}, {"to", false}};

static const struct csv_shape rows = {"steps", {"site", "action", "users", "rate", "step_rate"}};

struct funnel_state {
    struct date_params asked;
    struct activity_days window;
    struct activity_set steps[STEPS_MAX]; /* each set narrows the one before */
    struct activity_count counts[STEPS_MAX];
    size_t n;
};

static void release(struct http_exchange *exchange)
{
    struct funnel_state *state = exchange->state;
    date_params_release(&state->asked);
    free(state);
}

static bool read_steps(struct http_exchange *exchange, struct funnel_state *state)
{
    struct date_params *asked = &state->asked;
    size_t n = params_count(&asked->params, "step");
    if (n < STEPS_MIN || n > STEPS_MAX) {
        return query_refuse(exchange, "step", "must be given 2 to 8 times: an action each");
    }
    asked->n_actions = 0; /* drop the default action: there are only those of the steps */
    for (const struct param *at = NULL; (at = params_next(&asked->params, "step", at)) != NULL;) {
        struct activity_set *step = &state->steps[state->n];
        *step = (struct activity_set){.n_actions = 1, .narrows = state->n > 0};
        if (!date_params_action(exchange, asked, "step", at->value, &step->action)) {
            return false;
        }
        state->counts[state->n] =
            (struct activity_count){.a = (uint32_t)state->n, .b = (uint32_t)state->n};
        state->n++;
    }
    return true;
}

enum handler_result funnel_start(struct http_exchange *exchange)
{
    struct funnel_state *state = question_begin(exchange, sizeof(*state), release);
    if (state == NULL || !date_params_read(exchange, PARAM_SPECS(specs), &state->asked) ||
        !read_steps(exchange, state) ||
        !date_params_window(exchange, &state->asked, 1, &state->window)) {
        return HANDLER_REPLY;
    }
    for (size_t i = 0; i < state->n; i++) {
        state->steps[i].days = state->window;
    }
    exchange->job.op = STORAGE_ACTIVITY;
    exchange->job.u.activity = (struct activity_job){
        .asked = date_params_question(&state->asked, state->steps, state->n),
        .counts = state->counts,
        .n_counts = state->n,
    };
    return HANDLER_WAIT;
}

/* The share of @users in @of; 0 if @of is 0. */
static json_t *rate_json(uint64_t users, uint64_t of)
{
    return json_real(of == 0 ? 0 : (double)users / (double)of);
}

static json_t *steps_json(const struct funnel_state *state)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < state->n; i++) {
        uint64_t users = state->counts[i].users;
        uint64_t before = state->counts[i > 0 ? i - 1 : 0].users;
        json_t *step = json_object();
        json_object_set_new(
            step, "action", text_json(state->asked.actions[state->steps[i].action]));
        json_object_set_new(step, "users", json_integer((json_int_t)users));
        json_object_set_new(step, "rate", rate_json(users, state->counts[0].users));
        json_object_set_new(step, "step_rate", rate_json(users, before));
        json_array_append_new(steps, step);
    }
    return steps;
}

void funnel_finish(struct http_exchange *exchange)
{
    const struct funnel_state *state = exchange->state;
    json_t *root = date_params_answer(
        exchange, &state->asked, &state->window, exchange->job.u.activity.oldest_day);
    if (root == NULL) {
        return;
    }
    json_object_set_new(root, "steps", steps_json(state));
    json_object_set_new(root, "ordered", json_false());
    csv_reply(exchange, 200, root, &rows);
}
