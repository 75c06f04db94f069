/* breakdown.c - GET /breakdown: named events, or the values of a dimension, by how often they came
 * or by visitors.
 *
 * With `step` each row has a series.  The rows are asked for first, and then the series, one row
 * after the other. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/dimension/derive.h"
#include "handlers/http/app.h"
#include "handlers/question/question.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/text/check.h"
#include "storage/job/counted_name.h"

#define SERIES_ROWS_MAX 50 /* rows that may have a series */

static const struct param_spec specs[] = {{"site", false}, {"by", false}, {"metric", false},
    {"limit", false}, {"from", false}, {"to", false}, {"step", false}, {"tz", false},
    {"explain", false}, {"round", false}};

struct breakdown_state {
    struct window_params asked;
    struct slice by; /* as it was asked for */
    char class_text[NAME_CLASS_MAX];
    struct slice class;
    bool with_uv; /* the values' visitors are counted */
    bool by_uv;
    json_t *root; /* owned: the answer, while series are asked for */
    struct slice name; /* of the row whose series is asked for */
    char name_text[VALUE_NAME_MAX];
    size_t row;
};

static void release(struct http_exchange *exchange)
{
    struct breakdown_state *state = exchange->state;
    window_params_release(&state->asked);
    storage_job_release(&exchange->job);
    json_decref(state->root);
    free(state);
}

/* Read what to break down by.  False: it is nothing that can be counted. */
static bool read_by(const struct app *app, struct breakdown_state *state)
{
    static const struct slice head = {"prop:", 5};
    struct slice by = state->by;
    enum dimension dimension = dimension_find(by);
    if (slice_equal(by, SLICE("event"))) {
        state->class_text[0] = NAME_MARK_EVENT;
        state->class = (struct slice){state->class_text, 1};
        state->with_uv = true;
        return true;
    }
    struct slice prop = {NULL, 0};
    if (by.n > head.n && memcmp(by.p, head.p, head.n) == 0) {
        prop = (struct slice){by.p + head.n, by.n - head.n};
        dimension = name_valid(prop) ? DIMENSION_PROP : DIMENSION_N;
    }
    if (dimension == DIMENSION_N) {
        return false;
    }
    state->class = value_class(dimension, prop, state->class_text);
    state->with_uv =
        (derive_plan(app, state->asked.site)->with_visitors >> dimension & 1) != 0;
    return true;
}

static bool read_params(
    struct http_exchange *exchange, struct breakdown_state *state, struct pages_job *job)
{
    const struct params *params = &state->asked.params;
    if (!params_get(params, "by", &state->by) || !read_by(exchange->app, state)) {
        return query_refuse(exchange, "by",
            "must be source, utm_source, utm_medium, utm_campaign, utm_term, utm_content, browser, "
            "os, device, country, language, event or prop:NAME");
    }
    if (!question_read_pv_or_uv(exchange, params, "metric", &state->by_uv) ||
        !question_read_limit(exchange, params, &job->limit)) {
        return false;
    }
    if (state->by_uv && !state->with_uv) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "metric",
            "the visitors of %.*s are not counted: see visitors-by", (int)state->by.n,
            state->by.p);
        return false;
    }
    if (state->asked.step != STEP_NONE && job->limit > SERIES_ROWS_MAX) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "limit",
            "with step at most %d rows can be had", SERIES_ROWS_MAX);
        return false;
    }
    return true;
}

enum handler_result breakdown_start(struct http_exchange *exchange)
{
    struct breakdown_state *state = question_begin(exchange, sizeof(*state), release);
    struct pages_job job = {0};
    if (state == NULL ||
        !window_params_read_with(
            exchange, specs, sizeof(specs) / sizeof(specs[0]), &state->asked) ||
        !read_params(exchange, state, &job)) {
        return HANDLER_REPLY;
    }
    job.asked = window_params_question(&state->asked);
    job.class = job.prefix = state->class;
    job.by_uv = state->by_uv;
    job.without_uv = !state->with_uv;
    exchange->job.op = STORAGE_PAGES;
    exchange->job.u.pages = job;
    return HANDLER_WAIT;
}

static json_t *rows_json(const struct breakdown_state *state, const struct pages_job *job)
{
    json_t *rows = json_array();
    for (size_t i = 0; rows != NULL && i < job->n_rows; i++) {
        const struct page_row *row = &job->rows[i];
        json_t *item = json_pack("{s:o,s:I}", "value",
            json_stringn(row->page.p + state->class.n, row->page.n - state->class.n), "pv",
            (json_int_t)row->pv);
        if (state->with_uv) {
            json_object_set_new(item, "uv", json_integer((json_int_t)row->uv));
            json_object_set_new(item, "error", window_error_json(row->uv));
        }
        json_object_set_new(item, "at_most", json_integer((json_int_t)row->at_most));
        json_array_append_new(rows, item);
    }
    return rows;
}

static json_t *answer(const struct http_exchange *exchange, const struct breakdown_state *state)
{
    const struct pages_job *job = &exchange->job.u.pages;
    json_t *root = window_head_json(&state->asked, job->asked.answered);
    json_object_set_new(root, "by", json_stringn(state->by.p, state->by.n));
    json_object_set_new(root, "metric", json_string(state->by_uv ? "uv" : "pv"));
    json_object_set_new(root, "rows", rows_json(state, job));
    json_object_set_new(root, "other", json_integer((json_int_t)job->other_pv));
    json_object_set_new(
        root, "total", json_integer((json_int_t)(job->total_pv + job->other_pv)));
    window_tail_json(exchange, &job->asked, root);
    if (job->clamped) {
        json_object_set_new(root, "clamped", json_true());
    }
    if (job->other_pv > 0) {
        json_object_set_new(root, "capped", json_true());
    }
    return root;
}

/* ---- series ---- */

static void reply(struct http_exchange *exchange, struct breakdown_state *state)
{
    static const struct csv_shape shape = {"rows", {"site", "value", "pv", "uv", "at_most"}};
    static const struct csv_shape without_uv = {"rows", {"site", "value", "pv", "at_most"}};
    static const struct csv_shape series = {
        "rows/series", {"site", "value", "from", "to", "pv", "uv"}};
    static const struct csv_shape series_without_uv = {
        "rows/series", {"site", "value", "from", "to", "pv"}};
    bool has_series = state->asked.step != STEP_NONE;
    json_t *root = state->root;
    state->root = NULL;
    csv_reply(exchange, 200, root,
        state->with_uv ? (has_series ? &series : &shape)
                       : (has_series ? &series_without_uv : &without_uv));
}

/* Ask for the series of the next row.  False: there is none left, or memory is out. */
static bool ask_series(struct http_exchange *exchange, struct breakdown_state *state)
{
    const json_t *row = json_array_get(json_object_get(state->root, "rows"), state->row);
    const json_t *value = json_object_get(row, "value");
    if (value == NULL) {
        return false;
    }
    /* (The class, and at most what a name may have behind it.) */
    size_t n = json_string_length(value);
    memcpy(state->name_text, state->class.p, state->class.n);
    memcpy(state->name_text + state->class.n, json_string_value(value), n);
    state->name = (struct slice){state->name_text, state->class.n + n};
    struct count_job job = {.asked = window_params_question(&state->asked),
        .metric = METRIC_PV,
        .all_metrics = state->with_uv,
        .pages = &state->name,
        .n_pages = 1,
        .step = state->asked.step,
        .zone = state->asked.zone};
    storage_job_release(&exchange->job);
    exchange->job.op = STORAGE_COUNT;
    exchange->job.u.count = job;
    return true;
}

static void take_series(struct http_exchange *exchange, struct breakdown_state *state)
{
    const struct count_job *job = &exchange->job.u.count;
    json_t *row = json_array_get(json_object_get(state->root, "rows"), state->row++);
    json_t *series = json_array();
    for (size_t i = 0; i < job->n_points; i++) {
        const struct count_point *point = &job->points[i];
        uint64_t pv = point->values[METRIC_PV];
        uint64_t uv = point->values[METRIC_UV] < pv ? point->values[METRIC_UV] : pv;
        json_t *item = json_pack("{s:o,s:o,s:I}", "from", window_time_json(point->window.from_s),
            "to", window_time_json(point->window.to_s), "pv", (json_int_t)pv);
        if (state->with_uv) {
            json_object_set_new(item, "uv", json_integer((json_int_t)uv));
        }
        json_array_append_new(series, item);
    }
    json_object_set_new(row, "series", series);
    json_object_set_new(state->root, "step", json_string(step_name(job->used)));
}

void breakdown_finish(struct http_exchange *exchange)
{
    struct breakdown_state *state = exchange->state;
    bool is_series = exchange->job.op == STORAGE_COUNT;
    if (exchange->job.err != STORAGE_OK) {
        if (is_series && (exchange->job.err == STORAGE_TOO_FINE ||
                             exchange->job.err == STORAGE_TOO_MANY ||
                             exchange->job.err == STORAGE_TOO_BROAD)) {
            problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "step",
                "the series would have too many points, or is finer than what is kept; /stats says "
                "which step works for the window");
            return;
        }
        struct window nearest = is_series ? exchange->job.u.count.asked.answered
                                          : exchange->job.u.pages.asked.answered;
        window_failed(exchange, &state->asked, nearest);
        return;
    }
    if (is_series) {
        take_series(exchange, state);
    } else {
        state->root = answer(exchange, state);
    }
    exchange->again = state->asked.step != STEP_NONE && ask_series(exchange, state);
    if (!exchange->again) {
        reply(exchange, state);
    }
}
