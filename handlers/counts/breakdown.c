/* breakdown.c - GET /breakdown: named events, sections, or the values of a dimension, by how often
 * they came or by visitors.
 *
 * The rows are one job for storage.  With the parameter `step` each row has a series: that is one
 * more job for each row, one after the other, over the window that the first job answered. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/dimension/breakdown_by.h"
#include "handlers/http/app.h"
#include "handlers/question/count_reply.h"
#include "handlers/question/question.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"

static const struct param_spec specs[] = {{"site", false}, {"by", false}, {"metric", false},
    {"limit", false}, {"from", false}, {"to", false}, {"tz", false}, {"step", false},
    {"explain", false}, {"round", false}};

static const struct csv_shape rows_alone = {"rows", {"site", "value", "pv", "uv", "at_most"}};
static const struct csv_shape rows_without_uv = {"rows", {"site", "value", "pv", "at_most"}};
static const struct csv_shape rows_of_pv = {"rows/series", {"site", "value", "from", "to", "pv"}};
static const struct csv_shape rows_of_uv = {"rows/series", {"site", "value", "from", "to", "uv"}};

struct breakdown_state {
    struct window_params asked;
    struct slice by; /* the value of the parameter `by` */
    struct breakdown_by found;
    struct slice class;      /* the class of the names, in `found` */
    struct storage_job rows; /* owned: the job of the rows, which is done */
    json_t *answer;          /* owned: the answer as far as it is made */
    size_t next;             /* the row whose series is asked for */
    bool not_kept;           /* the window is not kept: the job at hand asks which window works */
    struct window nearest;   /* if not_kept: the nearest window that the rows could have */
    enum step step;          /* the step of all series */
};

static void release(struct http_exchange *exchange)
{
    struct breakdown_state *state = exchange->state;
    window_params_release(&state->asked);
    storage_job_release(&state->rows);
    json_decref(state->answer);
    free(state);
}

/* Read by what the rows are ordered, else it is page views.  False: the response says what is
 * wrong. */
static bool read_metric(
    struct http_exchange *exchange, const struct params *params, bool *ret_by_uv)
{
    struct slice value = SLICE("pv");
    (void)params_get(params, "metric", &value);
    *ret_by_uv = slice_equal(value, SLICE("uv"));
    return *ret_by_uv || slice_equal(value, SLICE("pv")) ||
           query_refuse(exchange, "metric", "must be pv or uv");
}

/* Read by, metric and limit.  False: the response says what is wrong. */
static bool read_params(
    struct http_exchange *exchange, struct breakdown_state *state, struct pages_job *job)
{
    const struct params *params = &state->asked.params;
    if (!params_get(params, "by", &state->by) ||
        !breakdown_by_read(exchange->app, state->asked.site, state->by, &state->found)) {
        return query_refuse(exchange, "by", BREAKDOWN_BY_FAULT);
    }
    state->class = (struct slice){state->found.text, state->found.n};
    if (!read_metric(exchange, params, &job->by_uv) ||
        !question_read_limit(exchange, params, &job->limit)) {
        return false;
    }
    if (job->by_uv && !state->found.with_uv) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "metric",
            "the visitors of %.*s are not counted: see the option visitors-by", (int)state->by.n,
            state->by.p);
        return false;
    }
    return true;
}

enum handler_result breakdown_start(struct http_exchange *exchange)
{
    struct breakdown_state *state = question_begin(exchange, sizeof(*state), release);
    struct pages_job job = {0};
    if (state == NULL || !window_params_read_with(exchange, PARAM_SPECS(specs), &state->asked) ||
        !read_params(exchange, state, &job)) {
        return HANDLER_REPLY;
    }
    job.asked = window_params_question(&state->asked);
    job.class = job.prefix = state->class;
    job.without_uv = !state->found.with_uv;
    exchange->job.op = STORAGE_PAGES;
    exchange->job.u.pages = job;
    return HANDLER_WAIT;
}

/* ---- the rows ---- */

static json_t *row_json(const struct breakdown_state *state, const struct page_row *row)
{
    json_t *item = json_pack("{s:o,s:I}", "value",
        json_stringn(row->page.p + state->class.n, row->page.n - state->class.n), "pv",
        (json_int_t)row->pv);
    if (state->found.with_uv) {
        json_object_set_new(item, "uv", json_integer((json_int_t)row->uv));
        json_object_set_new(item, "error", window_error_json(row->uv));
    }
    json_object_set_new(item, "at_most", json_integer((json_int_t)row->at_most));
    return item;
}

static json_t *rows_json(const struct breakdown_state *state, const struct pages_job *job)
{
    json_t *rows = json_array();
    for (size_t i = 0; rows != NULL && i < job->n_rows; i++) {
        json_array_append_new(rows, row_json(state, &job->rows[i]));
    }
    return rows;
}

static json_t *answer_of_rows(
    const struct http_exchange *exchange, const struct breakdown_state *state)
{
    const struct pages_job *job = &exchange->job.u.pages;
    json_t *root = window_head_json(&state->asked, job->asked.answered);
    json_object_set_new(root, "by", text_json(state->by));
    json_object_set_new(root, "metric", json_string(job->by_uv ? "uv" : "pv"));
    json_object_set_new(root, "rows", rows_json(state, job));
    json_object_set_new(root, "other", json_integer((json_int_t)job->other_pv));
    uint64_t total = job->total_pv + job->other_pv;
    json_object_set_new(root, "total", json_integer((json_int_t)total));
    window_tail_json(exchange, &job->asked, state->found.with_uv, root);
    flag_json(root, "clamped", job->clamped);
    flag_json(root, "capped", job->other_pv > 0);
    if (!state->found.counted) { /* the rows were counted before the configuration changed */
        json_object_set_new(root, "counted", json_false());
    }
    return root;
}

/* A table has no place for the member `other`, so it becomes the last row there. */
static void add_other_row(const struct http_exchange *exchange, json_t *root)
{
    json_t *other = json_object_get(root, "other");
    if (json_integer_value(other) > 0 && csv_asked(exchange)) {
        json_array_append_new(
            json_object_get(root, "rows"), json_pack("{s:s,s:O,s:n,s:O}", "value", "(other)", "pv",
                                               other, "uv", "at_most", other));
    }
}

/* ---- the series of the rows ---- */

static void reply_answer(struct http_exchange *exchange, const struct csv_shape *shape)
{
    struct breakdown_state *state = exchange->state;
    json_t *answer = state->answer;
    state->answer = NULL;
    csv_reply(exchange, 200, answer, shape);
}

/* Fill a job for the series of the next row.  If there is no further row the answer is complete. */
static void ask_series(struct http_exchange *exchange)
{
    struct breakdown_state *state = exchange->state;
    const struct pages_job *rows = &state->rows.u.pages;
    if (state->next == rows->n_rows) {
        if (state->step == STEP_AUTO) { /* storage chooses the step with the first row: none came */
            state->step = step_fitting(state->asked.zone, rows->asked.answered, STEP_AUTO_MAX);
        }
        json_object_set_new(state->answer, "step", json_string(step_name(state->step)));
        reply_answer(exchange, rows->by_uv ? &rows_of_uv : &rows_of_pv);
        return;
    }
    exchange->job.op = STORAGE_COUNT;
    exchange->job.u.count = (struct count_job){
        .asked = {.site = state->asked.site, .window = rows->asked.answered},
        .metric = rows->by_uv ? METRIC_UV : METRIC_PV,
        .pages = &rows->rows[state->next].page,
        .n_pages = 1,
        .step = state->step,
        .zone = state->asked.zone,
    };
    exchange->again = true;
}

/* Have all series together no more points than one series may have?  False: the response says that
 * they are too many. */
static bool check_points(struct http_exchange *exchange, size_t n_rows)
{
    const struct count_job *job = &exchange->job.u.count;
    if (job->n_points <= STEP_POINTS_MAX / n_rows) {
        return true;
    }
    problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "step",
        "%zu series of %zu points each are more than %d points: ask for a coarser step, or for "
        "fewer rows (limit)",
        n_rows, job->n_points, STEP_POINTS_MAX);
    return false;
}

/* The points of a series.  @most is the visitors of the row: an estimate for a point is cut to it,
 * because the row's own estimate may have been cut to the page views. */
static json_t *series_json(const struct count_job *job, uint64_t most)
{
    json_t *series = json_array();
    for (size_t i = 0; series != NULL && i < job->n_points; i++) {
        const struct count_point *point = &job->points[i];
        uint64_t value = point->values[job->metric];
        value = job->metric == METRIC_UV && value > most ? most : value;
        json_array_append_new(
            series, json_pack("{s:o,s:o,s:I}", "from", window_time_json(point->window.from_s), "to",
                        window_time_json(point->window.to_s),
                        job->metric == METRIC_UV ? "uv" : "pv", (json_int_t)value));
    }
    return series;
}

static void take_series(struct http_exchange *exchange)
{
    struct breakdown_state *state = exchange->state;
    const struct count_job *job = &exchange->job.u.count;
    if (exchange->job.err != STORAGE_OK) {
        count_failed(exchange, &state->asked);
        return;
    }
    if (!check_points(exchange, state->rows.u.pages.n_rows)) {
        return;
    }
    uint64_t most = state->rows.u.pages.rows[state->next].uv;
    json_t *row = json_array_get(json_object_get(state->answer, "rows"), state->next++);
    json_object_set_new(row, "series", series_json(job, most));
    state->step = job->used;
    storage_job_release(&exchange->job);
    ask_series(exchange);
}

/* The window is not kept.  The nearest window for the rows may be one without series.  So a job
 * asks for the series of the whole site: its failure says which window and step work. */
static void ask_nearest(struct http_exchange *exchange)
{
    struct breakdown_state *state = exchange->state;
    state->not_kept = true;
    state->nearest = exchange->job.u.pages.asked.answered;
    storage_job_release(&exchange->job);
    exchange->job.op = STORAGE_COUNT;
    exchange->job.u.count = (struct count_job){
        .asked = window_params_question(&state->asked),
        .metric = METRIC_PV,
        .step = state->asked.step,
        .zone = state->asked.zone,
    };
    exchange->again = true;
}

static void refuse_window(struct http_exchange *exchange)
{
    const struct breakdown_state *state = exchange->state;
    if (exchange->job.err == STORAGE_OK) { /* the window is kept for the site, but not for names */
        window_not_kept(exchange, state->nearest, WINDOW_OUTER);
    } else {
        count_failed(exchange, &state->asked);
    }
}

void breakdown_finish(struct http_exchange *exchange)
{
    struct breakdown_state *state = exchange->state;
    if (state->not_kept) {
        refuse_window(exchange);
        return;
    }
    if (exchange->job.op == STORAGE_COUNT) {
        take_series(exchange);
        return;
    }
    if (exchange->job.err == STORAGE_NOT_KEPT && state->asked.step != STEP_NONE &&
        !state->asked.round_outer) {
        ask_nearest(exchange);
        return;
    }
    if (exchange->job.err != STORAGE_OK) {
        window_failed(exchange, &state->asked, exchange->job.u.pages.asked.answered);
        return;
    }
    state->answer = answer_of_rows(exchange, state);
    if (state->asked.step == STEP_NONE) {
        add_other_row(exchange, state->answer);
        reply_answer(exchange, state->found.with_uv ? &rows_alone : &rows_without_uv);
        return;
    }
    state->rows = exchange->job; /* the jobs of the series point to the names in it */
    exchange->job.u.pages = (struct pages_job){0};
    state->step = state->asked.step;
    ask_series(exchange);
}
