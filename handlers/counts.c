#include "handlers/counts.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "handlers/app.h"
#include "handlers/csv.h"
#include "handlers/problem.h"
#include "handlers/timestamp.h"
#include "handlers/window_params.h"

#define STANDARD_ERROR 0.0081 /* of Redis's HyperLogLog: 1.04 / sqrt(16384) */
#define Z95            1.96   /* 95 % of a normal distribution lie within so many deviations */

struct counts_state {
    struct window_params asked;
    enum metric metric;
    bool all_metrics;
};

static const char *const names[METRICS] = {
    [METRIC_PV] = "pv", [METRIC_UV] = "uv", [METRIC_IPS] = "ips", [METRIC_VISITS] = "visits"};

/* As CSV: a row for each bucket of a series, or one for the window. */
static const struct csv_shape rows[METRICS] = {
    [METRIC_PV] = {"series", {"site", "from", "to", "pv"}},
    [METRIC_UV] = {"series", {"site", "from", "to", "uv"}},
    [METRIC_IPS] = {"series", {"site", "from", "to", "ips"}},
    [METRIC_VISITS] = {"series", {"site", "from", "to", "visits"}},
};
static const struct csv_shape rows_of_all = {
    "series", {"site", "from", "to", "pv", "uv", "ips", "visits"}};

static void release(struct http_exchange *exchange)
{
    struct counts_state *state = exchange->state;
    window_params_release(&state->asked);
    storage_job_release(&exchange->job);
    free(state);
}

static enum handler_result start(
    struct http_exchange *exchange, enum metric metric, bool all_metrics)
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
    state->all_metrics = all_metrics;
    struct window_params *asked = &state->asked;
    if (!window_params_read(exchange, asked)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_COUNT;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    exchange->job.u.count = (struct count_job){
        .metric = metric,
        .all_metrics = all_metrics,
        .site = asked->site,
        .pages = asked->pages,
        .n_pages = asked->n_pages,
        .window = asked->window,
        .to_is_now = asked->to_is_now,
        .round_outer = asked->round_outer,
        .explain = asked->explain,
        .step = asked->step,
        .zone = asked->zone,
    };
    return HANDLER_WAIT;
}

enum handler_result uv_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_UV, false);
}

enum handler_result pv_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_PV, false);
}

enum handler_result ips_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_IPS, false);
}

enum handler_result visits_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_VISITS, false);
}

enum handler_result stats_start(struct http_exchange *exchange)
{
    return start(exchange, METRIC_PV, true);
}

static json_t *time_json(int64_t at_s)
{
    char text[32];
    timestamp_print(at_s, text);
    return json_string(text);
}

static json_t *pages_json(const struct window_params *asked)
{
    if (asked->n_pages == 0) {
        return json_null();
    }
    json_t *pages = json_array();
    for (size_t i = 0; pages != NULL && i < asked->n_pages; i++) {
        json_array_append_new(pages, json_stringn(asked->pages[i].p, asked->pages[i].n));
    }
    return pages;
}

static json_t *error_json(uint64_t value)
{
    double margin = Z95 * STANDARD_ERROR * (double)value;
    double low = round((double)value - margin);
    double high = round((double)value + margin);
    return json_pack("{s:f,s:I,s:I}", "relative", STANDARD_ERROR, "low", (json_int_t)low, "high",
        (json_int_t)high);
}

static json_t *list_json(const struct count_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < job->n_keys; i++) {
        const struct counted_key *key = &job->keys[i];
        json_array_append_new(
            list, json_pack("{s:s,s:o,s:o,s:o}", "level", level_name(key->bucket.level), "from",
                      time_json(key->bucket.start_s), "to", time_json(key->bucket.end_s), "key",
                      json_stringn(key->key, key->n)));
    }
    return list;
}

static json_t *cover_json(const struct count_job *job)
{
    json_int_t keys = 0;
    json_t *cover = json_object();
    for (int level = 0; level < LEVELS; level++) {
        keys += job->per_level[level];
    }
    json_object_set_new(cover, "keys", json_integer(keys));
    for (int level = 0; level < LEVELS; level++) {
        json_object_set_new(
            cover, level_name((enum level)level), json_integer(job->per_level[level]));
    }
    if (job->explain) {
        json_object_set_new(cover, "list", list_json(job));
    }
    return cover;
}

/* Does the window reach over a border of rotation periods, so that a hashed visitor may have two
 * names? */
static bool spans_rotation(const struct app *app, struct window window)
{
    return rotation_start_s(app->rotation, window.from_s) !=
           rotation_start_s(app->rotation, window.to_s - 1);
}

static bool is_asked(const struct counts_state *state, int metric)
{
    return state->all_metrics || (int)state->metric == metric;
}

static bool is_estimate(int metric)
{
    return metric == METRIC_UV || metric == METRIC_IPS;
}

/* Forged sketches can estimate to 2^63 (see hll.h).  An estimate that stands beside the page views
 * never exceeds them: *ret_clamped. */
static uint64_t figure(const struct counts_state *state, const uint64_t values[METRICS],
    enum metric metric, bool *ret_clamped)
{
    uint64_t value = values[metric] > INT64_MAX / 2 ? INT64_MAX / 2 : values[metric];
    if (state->all_metrics && is_estimate(metric) && value > values[METRIC_PV]) {
        *ret_clamped = true;
        return values[METRIC_PV];
    }
    return value;
}

static void add_figures(json_t *object, const struct counts_state *state,
    const uint64_t values[METRICS], bool *ret_clamped)
{
    for (int metric = 0; metric < METRICS; metric++) {
        if (is_asked(state, metric)) {
            uint64_t value = figure(state, values, (enum metric)metric, ret_clamped);
            json_object_set_new(object, names[metric], json_integer((json_int_t)value));
        }
    }
}

/* One object for one estimate; by name for several. */
static json_t *errors_json(const struct counts_state *state, const uint64_t values[METRICS])
{
    bool clamped = false;
    if (!state->all_metrics) {
        return error_json(figure(state, values, state->metric, &clamped));
    }
    json_t *errors = json_object();
    for (int metric = 0; metric < METRICS; metric++) {
        if (is_estimate(metric)) {
            json_object_set_new(errors, names[metric],
                error_json(figure(state, values, (enum metric)metric, &clamped)));
        }
    }
    return errors;
}

static json_t *series_json(
    const struct counts_state *state, const struct count_job *job, bool *ret_clamped)
{
    json_t *series = json_array();
    for (size_t i = 0; series != NULL && i < job->n_points; i++) {
        const struct count_point *point = &job->points[i];
        json_t *item = json_object();
        json_object_set_new(item, "from", time_json(point->window.from_s));
        json_object_set_new(item, "to", time_json(point->window.to_s));
        add_figures(item, state, point->values, ret_clamped);
        json_array_append_new(series, item);
    }
    return series;
}

static json_t *answer(
    const struct app *app, const struct counts_state *state, const struct count_job *job)
{
    bool clamped = false;
    json_t *root = json_object();
    json_object_set_new(root, "site", json_stringn(state->asked.site.p, state->asked.site.n));
    json_object_set_new(root, "pages", pages_json(&state->asked));
    json_object_set_new(root, "from", time_json(job->answered.from_s));
    json_object_set_new(root, "to", time_json(job->answered.to_s));
    json_object_set_new(root, "tz", json_string(zone_name(state->asked.zone)));
    add_figures(root, state, job->values, &clamped);
    if (state->all_metrics || is_estimate(state->metric)) {
        json_object_set_new(root, "error", errors_json(state, job->values));
    }
    json_object_set_new(root, "cover", cover_json(job));
    if (job->step != STEP_NONE) {
        json_object_set_new(root, "step", json_string(step_name(job->used)));
        json_object_set_new(root, "series", series_json(state, job, &clamped));
    }
    if (clamped) {
        json_object_set_new(root, "clamped", json_true());
    }
    if ((is_asked(state, METRIC_UV) || is_asked(state, METRIC_VISITS)) &&
        spans_rotation(app, job->answered)) {
        json_object_set_new(root, "spans_rotation", json_true());
    }
    return root;
}

/* 422: say what would work. */
static void reply_step(
    struct http_response *response, enum storage_err err, const struct count_job *job)
{
    const char *works = step_name(job->used);
    if (err == STORAGE_TOO_FINE && job->used == STEP_NONE) {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "no step in this time zone has borders that are still kept for this window: ask for a "
            "later one, or without tz");
    } else if (err == STORAGE_TOO_FINE) {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the step is finer than what is kept for this window; step=%s works", works);
    } else if (job->used == STEP_NONE) {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "no step is long enough for this window: at most %d points (%d with auto) are answered",
            STEP_POINTS_MAX, STEP_AUTO_MAX);
    } else {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the series would have more than %d points; step=%s has fewer", STEP_POINTS_MAX, works);
    }
}

static void reply_not_kept(struct http_response *response, const struct window *nearest)
{
    char from[32];
    char to[32];
    if (nearest->from_s == nearest->to_s) {
        problem_reply_parameter(
            response, PROBLEM_UNACCEPTABLE, "from", "nothing of this window is kept any more");
        return;
    }
    timestamp_print(nearest->from_s, from);
    timestamp_print(nearest->to_s, to);
    problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "from",
        "the window is not kept at this precision any more; the nearest one that can be answered "
        "is "
        "from=%s&to=%s (round=outer takes it)",
        from, to);
}

void counts_finish(struct http_exchange *exchange)
{
    const struct storage_job *job = &exchange->job;
    if (job->err == STORAGE_OK) {
        const struct counts_state *state = exchange->state;
        csv_reply(exchange, 200, answer(exchange->app, state, &job->u.count),
            state->all_metrics ? &rows_of_all : &rows[state->metric]);
    } else if (job->err == STORAGE_NOT_KEPT) {
        reply_not_kept(&exchange->response, &job->u.count.answered);
    } else if (job->err == STORAGE_TOO_FINE || job->err == STORAGE_TOO_MANY) {
        reply_step(&exchange->response, job->err, &job->u.count);
    } else if (job->err == STORAGE_TOO_BROAD) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "from",
            "the window needs too many keys: ask for fewer pages, or for a window of whole hours");
    } else {
        problem_from_storage(&exchange->response, job->err, job->detail);
    }
}
