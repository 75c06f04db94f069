/* frequency.c - GET /frequency: how many users were active on one day of a window, on two, and so
 * on. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/question/date_params.h"
#include "handlers/question/question.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"

static const struct param_spec specs[] = {
    {"site", false}, {"action", false}, {"from", false}, {"to", false}};

static const struct csv_shape rows = {"days", {"site", "action", "n", "users"}};

struct frequency_state {
    struct date_params asked;
    struct activity_set set;
    uint64_t *users; /* owned: by number of days, from 0 on */
};

static void release(struct http_exchange *exchange)
{
    struct frequency_state *state = exchange->state;
    date_params_release(&state->asked);
    free(state->users);
    free(state);
}

enum handler_result frequency_start(struct http_exchange *exchange)
{
    struct frequency_state *state = question_begin(exchange, sizeof(*state), release);
    if (state == NULL || !date_params_read(exchange, PARAM_SPECS(specs), &state->asked) ||
        !date_params_window(exchange, &state->asked, 1, &state->set.days)) {
        return HANDLER_REPLY;
    }
    state->set.n_actions = 1;
    state->set.min_days = 1;
    state->users = calloc(state->set.days.n + 1, sizeof(*state->users));
    if (state->users == NULL) {
        (void)problem_no_memory(&exchange->response);
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_FREQUENCY;
    exchange->job.u.frequency = (struct frequency_job){
        .asked = date_params_question(&state->asked, &state->set, 1),
        .users = state->users,
    };
    return HANDLER_WAIT;
}

void frequency_finish(struct http_exchange *exchange)
{
    const struct frequency_state *state = exchange->state;
    const struct activity_days *window = &state->set.days;
    json_t *root =
        date_params_answer(exchange, &state->asked, window, exchange->job.u.frequency.oldest_day);
    if (root == NULL) {
        return;
    }
    json_t *days = json_array();
    for (size_t n = 1; n <= window->n; n++) {
        json_array_append_new(
            days, json_pack("{s:I,s:I}", "n", (json_int_t)n, "users", (json_int_t)state->users[n]));
    }
    json_object_set_new(root, "action", text_json(state->asked.actions[0]));
    json_object_set_new(root, "days", days);
    csv_reply(exchange, 200, root, &rows);
}
