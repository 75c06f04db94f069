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

static json_t *answer(
    const struct app *app, const struct counts_state *state, const struct count_job *job)
{
    bool estimated = state->metric == METRIC_UV || state->metric == METRIC_IPS;
    /* Forged sketches can estimate to 2^63 (see hll.h). */
    uint64_t value = job->value > INT64_MAX / 2 ? INT64_MAX / 2 : job->value;
    json_t *root = json_object();
    json_object_set_new(root, "site", json_stringn(state->asked.site.p, state->asked.site.n));
    json_object_set_new(root, "pages", pages_json(&state->asked));
    json_object_set_new(root, "from", time_json(job->answered.from_s));
    json_object_set_new(root, "to", time_json(job->answered.to_s));
    json_object_set_new(root, "tz", json_string("UTC"));
    json_object_set_new(root, names[state->metric], json_integer((json_int_t)value));
    if (estimated) {
        json_object_set_new(root, "error", error_json(value));
    }
    json_object_set_new(root, "cover", cover_json(job));
    if (state->metric != METRIC_PV && state->metric != METRIC_IPS &&
        spans_rotation(app, job->answered)) {
        json_object_set_new(root, "spans_rotation", json_true());
    }
    return root;
}

/* 422: say what would work. */
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
        csv_reply(exchange, 200, answer(exchange->app, state, &job->u.count), &rows[state->metric]);
    } else if (job->err == STORAGE_NOT_KEPT) {
        reply_not_kept(&exchange->response, &job->u.count.answered);
    } else if (job->err == STORAGE_TOO_BROAD) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "from",
            "the window needs too many keys: ask for fewer pages, or for a window of whole hours");
    } else {
        problem_from_storage(&exchange->response, job->err, job->detail);
    }
}
