#include "handlers/counts.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/app.h"
#include "handlers/problem.h"
#include "handlers/reply.h"
#include "handlers/window_params.h"
#include "handlers/window_reply.h"

struct counts_state {
    struct window_params asked;
    enum metric metric;
};

static const char *const names[METRICS] = {
    [METRIC_PV] = "pv", [METRIC_UV] = "uv", [METRIC_IPS] = "ips", [METRIC_VISITS] = "visits"};

static void release(struct http_exchange *exchange)
{
    struct counts_state *state = exchange->state;
    window_params_release(&state->asked);
    storage_job_release(&exchange->job);
    free(state);
}

static enum handler_result start(struct http_exchange *exchange, enum metric metric)
{
    struct counts_state *state = calloc(1, sizeof(*state));
    if (state == NULL || exchange->request.now_ms == 0) {
        problem_from_storage(
            &exchange->response, state == NULL ? STORAGE_NOMEM : STORAGE_DOWN, NULL);
        free(state);
        return HANDLER_REPLY;
    }
    exchange->state = state;
    exchange->release = release;
    state->metric = metric;
    struct window_params *asked = &state->asked;
    if (!window_params_read(exchange, asked)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_COUNT;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    exchange->job.u.count = (struct count_job){
        .metric = metric,
        .site = asked->site,
        .pages = asked->pages,
        .n_pages = asked->n_pages,
        .set = {.name = asked->pageset},
        .window = asked->window,
        .to_is_now = asked->to_is_now,
        .round_outer = asked->round_outer,
        .explain = asked->explain,
    };
    return HANDLER_WAIT;
}

enum handler_result uv_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_UV);
}

enum handler_result pv_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_PV);
}

enum handler_result ips_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_IPS);
}

enum handler_result visits_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_VISITS);
}

static json_t *answer(
    const struct app *app, const struct counts_state *state, const struct count_job *job)
{
    bool estimated = state->metric == METRIC_UV || state->metric == METRIC_IPS;
    /* Forged sketches can estimate to 2^63 (see hll.h). */
    uint64_t value = job->value > INT64_MAX / 2 ? INT64_MAX / 2 : job->value;
    json_t *root = json_object();
    json_object_set_new(root, "site", json_stringn(state->asked.site.p, state->asked.site.n));
    json_object_set_new(root, "pages", window_pages_json(job->pages, job->n_pages));
    json_object_set_new(root, "from", window_time_json(job->answered.from_s));
    json_object_set_new(root, "to", window_time_json(job->answered.to_s));
    json_object_set_new(root, "tz", json_string("UTC"));
    json_object_set_new(root, names[state->metric], json_integer((json_int_t)value));
    if (estimated) {
        json_object_set_new(root, "error", window_error_json(value));
    }
    json_object_set_new(
        root, "cover", window_cover_json(job->per_level, job->explain, job->keys, job->n_keys));
    if (state->metric != METRIC_PV && state->metric != METRIC_IPS &&
        window_spans_rotation(app, job->answered)) {
        json_object_set_new(root, "spans_rotation", json_true());
    }
    return root;
}

void counts_finish(struct http_exchange *exchange)
{
    const struct storage_job *job = &exchange->job;
    if (job->err == STORAGE_OK) {
        reply_json(&exchange->response, 200, answer(exchange->app, exchange->state, &job->u.count));
    } else {
        const struct counts_state *state = exchange->state;
        window_failed(exchange, &state->asked, job->u.count.answered);
    }
}
