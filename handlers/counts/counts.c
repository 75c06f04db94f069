/* counts.c - GET /uv, /pv, /ips, /visits and /stats: page views, visitors, addresses and visits of
 * one window.
 *
 * /stats answers all four figures, and the other endpoints one each.  For the whole site /stats
 * also has views per visit, bounce rate and visit duration.  With the parameter `step` the answer
 * has a series beside the figures: the same figures for each step of the window. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/dimension/page_rules.h"
#include "handlers/http/app.h"
#include "handlers/question/count_reply.h"
#include "handlers/question/question.h"
#include "handlers/question/visit_figures.h"
#include "handlers/question/window_params.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "storage/job/counted_name.h"

#define FIGURES       (METRIC_VISITS + 1) /* the metrics that are figures of an answer themselves */
#define VISIT_FIGURES 3                   /* the figures that are made of sums over visits */

struct counts_state {
    struct window_params asked;
    enum metric metric; /* unless all_metrics */
    bool all_metrics;
    bool addresses;  /* addresses are counted */
    bool visit_sums; /* the figures of visits are asked for */
    json_t *names;   /* owned: the names that were asked for in place of pages; NULL: none */
};

static const char *const names[FIGURES] = {
    [METRIC_PV] = "pv", [METRIC_UV] = "uv", [METRIC_IPS] = "ips", [METRIC_VISITS] = "visits"};

/* The answers as CSV: one row for each point of a series, or one for the window. */
static const struct csv_shape rows[FIGURES] = {
    [METRIC_PV] = {"series", {"site", "from", "to", "pv"}},
    [METRIC_UV] = {"series", {"site", "from", "to", "uv"}},
    [METRIC_IPS] = {"series", {"site", "from", "to", "ips"}},
    [METRIC_VISITS] = {"series", {"site", "from", "to", "visits"}},
};
static const struct csv_shape rows_of_all = {
    "series", {"site", "from", "to", "pv", "uv", "ips", "visits"}};
static const struct csv_shape rows_of_site = {
    "series", {"site", "from", "to", "pv", "uv", "ips", "visits", "views_per_visit", "bounce_rate",
                  "visit_duration_s"}};

/* /visits takes no named events, because they have no visits. */
static const struct param_spec visits_specs[] = {
    WINDOW_PARAMS, {"step", false}, WINDOW_SECTION_PARAM};
static const struct param_spec other_specs[] = {
    WINDOW_PARAMS, {"step", false}, WINDOW_SECTION_PARAM, WINDOW_EVENT_PARAM};

static void release(struct http_exchange *exchange)
{
    struct counts_state *state = exchange->state;
    window_params_release(&state->asked);
    json_decref(state->names);
    free(state);
}

static enum handler_result start(
    struct http_exchange *exchange, enum metric metric, bool all_metrics)
{
    struct counts_state *state = question_begin(exchange, sizeof(*state), release);
    if (state == NULL) {
        return HANDLER_REPLY;
    }
    state->metric = metric;
    state->all_metrics = all_metrics;
    state->addresses = exchange->app->addresses;
    struct window_params *asked = &state->asked;
    bool read = metric == METRIC_VISITS
                    ? window_params_read_with(exchange, PARAM_SPECS(visits_specs), asked)
                    : window_params_read_with(exchange, PARAM_SPECS(other_specs), asked);
    if (!read) {
        return HANDLER_REPLY;
    }
    bool named = asked->n_names > 0;
    if (named && (asked->n_pages > 0 || asked->pageset.n > 0 || asked->mixed_names)) {
        (void)query_refuse(exchange, asked->name_param,
            asked->mixed_names ? "event and section are not asked for together"
                               : "is given in place of page and pageset");
        return HANDLER_REPLY;
    }
    state->visit_sums = all_metrics && !named && asked->n_pages == 0 && asked->pageset.n == 0;
    if (named) {
        state->names = window_pages_json(asked->names, asked->n_names);
    }
    if (named && !event_name_is(asked->names[0])) { /* else sums would count a page view twice */
        asked->n_names = page_sections_apart(exchange->app, asked->names, asked->n_names);
    }
    exchange->job.op = STORAGE_COUNT;
    exchange->job.u.count = (struct count_job){
        .asked = window_params_question(asked),
        .metric = metric,
        .all_metrics = all_metrics,
        .visit_sums = state->visit_sums,
        .bounded = !named || event_name_is(asked->names[0]), /* a section has no cap */
        .pages = named ? asked->names : asked->pages,
        .n_pages = named ? asked->n_names : asked->n_pages,
        .set = {.name = asked->pageset},
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
    if (!exchange->app->addresses) {
        problem_reply(&exchange->response, PROBLEM_UNACCEPTABLE, "%s", PROBLEM_NO_ADDRESSES);
        return HANDLER_REPLY;
    }
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

static bool is_asked(const struct counts_state *state, int metric)
{
    return state->all_metrics || (int)state->metric == metric;
}

static bool is_estimate(int metric)
{
    return metric == METRIC_UV || metric == METRIC_IPS;
}

/* The figure of @metric.  An estimate that stands beside the page views is cut to them.
 * *ret_clamped becomes true if it was cut. */
static uint64_t figure(const struct counts_state *state, const uint64_t values[METRICS],
    enum metric metric, bool *ret_clamped)
{
    uint64_t value = (uint64_t)window_figure(values[metric]);
    if (state->all_metrics && is_estimate(metric) && value > values[METRIC_PV]) {
        *ret_clamped = true;
        return values[METRIC_PV];
    }
    return value;
}

static bool is_about_events(const struct counts_state *state)
{
    return state->asked.n_names > 0 && event_name_is(state->asked.names[0]);
}

/* Is there a figure of @metric?  Named events are part of no visit. */
static bool is_counted(const struct counts_state *state, int metric)
{
    return metric == METRIC_VISITS ? !is_about_events(state)
                                   : metric != METRIC_IPS || state->addresses;
}

/* A member of an answer, or of a point of its series. */
struct named_figure {
    const char *name;
    enum { FIGURE_NONE, FIGURE_COUNT, FIGURE_REAL } kind; /* FIGURE_NONE is null in the answer */
    uint64_t count;                                       /* for FIGURE_COUNT */
    double real;                                          /* for FIGURE_REAL */
};

static unsigned visit_figures(const uint64_t values[METRICS], struct named_figure *ret)
{
    struct visit_figures f = {0};
    bool any = visit_figures_of(values, &f);
    ret[0] = (struct named_figure){.name = "views_per_visit", .real = f.views_per_visit};
    ret[1] = (struct named_figure){.name = "bounce_rate", .real = f.bounce_rate};
    ret[2] = (struct named_figure){.name = "visit_duration_s", .real = f.duration_s};
    ret[0].kind = ret[1].kind = ret[2].kind = any ? FIGURE_REAL : FIGURE_NONE;
    return VISIT_FIGURES;
}

/* Write all figures that are asked for to @ret.  Returns how many there are. */
static unsigned figures_of(const struct counts_state *state, const uint64_t values[METRICS],
    struct named_figure ret[FIGURES + VISIT_FIGURES], bool *ret_clamped)
{
    unsigned n = 0;
    for (int metric = 0; metric < FIGURES; metric++) {
        if (is_asked(state, metric)) {
            bool counted = is_counted(state, metric);
            ret[n++] = (struct named_figure){.name = names[metric],
                .kind = counted ? FIGURE_COUNT : FIGURE_NONE,
                .count = counted ? figure(state, values, (enum metric)metric, ret_clamped) : 0};
        }
    }
    return state->visit_sums ? n + visit_figures(values, ret + n) : n;
}

static void add_figures(json_t *object, const struct counts_state *state,
    const uint64_t values[METRICS], bool *ret_clamped)
{
    struct named_figure figures[FIGURES + VISIT_FIGURES];
    unsigned n = figures_of(state, values, figures, ret_clamped);
    for (unsigned i = 0; i < n; i++) {
        const struct named_figure *f = &figures[i];
        json_object_set_new(object, f->name,
            f->kind == FIGURE_COUNT  ? json_integer((json_int_t)f->count)
            : f->kind == FIGURE_REAL ? json_real(f->real)
                                     : json_null());
    }
}

/* How far estimates may be off: one object for one estimate, an object by name for several. */
static json_t *errors_json(const struct counts_state *state, const uint64_t values[METRICS])
{
    bool clamped = false;
    if (!state->all_metrics) {
        return window_error_json(figure(state, values, state->metric, &clamped));
    }
    json_t *errors = json_object();
    for (int metric = 0; metric < FIGURES; metric++) {
        if (is_estimate(metric)) {
            uint64_t value = figure(state, values, (enum metric)metric, &clamped);
            json_object_set_new(errors, names[metric],
                is_counted(state, metric) ? window_error_json(value) : json_null());
        }
    }
    return errors;
}

/* The series as a tree, for a table. */
static json_t *series_json(
    const struct counts_state *state, const struct count_job *job, bool *ret_clamped)
{
    json_t *series = json_array();
    for (size_t i = 0; series != NULL && i < job->n_points; i++) {
        const struct count_point *point = &job->points[i];
        json_t *item = json_object();
        json_object_set_new(item, "from", window_time_json(point->window.from_s));
        json_object_set_new(item, "to", window_time_json(point->window.to_s));
        add_figures(item, state, point->values, ret_clamped);
        json_array_append_new(series, item);
    }
    return series;
}

static void put_figure(struct buffer *out, const struct named_figure *figure)
{
    buffer_text(out, ",\"");
    buffer_text(out, figure->name);
    buffer_text(out, "\":");
    switch (figure->kind) {
    case FIGURE_NONE:
        buffer_text(out, "null");
        break;
    case FIGURE_COUNT:
        buffer_decimal(out, (int64_t)figure->count);
        break;
    case FIGURE_REAL:
        reply_put_real(out, figure->real);
        break;
    }
}

/* Append the series as JSON text: to make a tree of thousands of values would take most of the time
 * of an answer. */
static void put_series(struct buffer *out, const struct counts_state *state,
    const struct count_job *job, bool *ret_clamped)
{
    for (size_t i = 0; i < job->n_points; i++) {
        const struct count_point *point = &job->points[i];
        struct named_figure figures[FIGURES + VISIT_FIGURES];
        unsigned n = figures_of(state, point->values, figures, ret_clamped);
        buffer_text(out, i == 0 ? "[{\"from\":" : ",{\"from\":");
        window_put_time(out, point->window.from_s);
        buffer_text(out, ",\"to\":");
        window_put_time(out, point->window.to_s);
        for (unsigned f = 0; f < n; f++) {
            put_figure(out, &figures[f]);
        }
        buffer_text(out, "}");
    }
    buffer_text(out, job->n_points == 0 ? "[]" : "]");
}

/* The answer without its series.  @clamped: a figure of the series was cut. */
static json_t *answer(const struct app *app, const struct counts_state *state,
    const struct count_job *job, bool clamped)
{
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(state->asked.site));
    bool named = state->asked.n_names > 0;
    json_object_set_new(
        root, "pages", named ? json_null() : window_pages_json(job->pages, job->n_pages));
    if (named) {
        json_object_set(root, is_about_events(state) ? "events" : "sections", state->names);
    }
    json_object_set_new(root, "from", window_time_json(job->asked.answered.from_s));
    json_object_set_new(root, "to", window_time_json(job->asked.answered.to_s));
    json_object_set_new(root, "tz", json_string(zone_name(state->asked.zone)));
    add_figures(root, state, job->values, &clamped);
    if (state->all_metrics || is_estimate(state->metric)) {
        json_object_set_new(root, "error", errors_json(state, job->values));
    }
    if (job->at_most > 0) {
        json_object_set_new(root, "at_most", json_integer(window_figure(job->at_most)));
    }
    json_object_set_new(root, "cover",
        window_cover_json(
            job->asked.per_level, job->asked.explain, job->asked.keys, job->asked.n_keys));
    if (job->step != STEP_NONE) {
        json_object_set_new(root, "step", json_string(step_name(job->used)));
    }
    flag_json(root, "clamped", clamped);
    flag_json(root, "spans_rotation",
        (state->all_metrics || state->metric != METRIC_PV) &&
            storage_spans_rotation(app->storage, job->asked.answered));
    return root;
}

/* Answer with the tree: as CSV, or as JSON if there is no series.  Without a series the answer is
 * the table's only row. */
static void reply_table(struct http_exchange *exchange, const struct counts_state *state)
{
    const struct count_job *job = &exchange->job.u.count;
    bool clamped = false;
    json_t *series = job->step != STEP_NONE ? series_json(state, job, &clamped) : NULL;
    json_t *root = answer(exchange->app, state, job, clamped);
    if (series != NULL) {
        json_object_set_new(root, "series", series);
    }
    csv_reply(exchange, 200, root,
        state->visit_sums    ? &rows_of_site
        : state->all_metrics ? &rows_of_all
                             : &rows[state->metric]);
}

void counts_finish(struct http_exchange *exchange)
{
    const struct counts_state *state = exchange->state;
    const struct count_job *job = &exchange->job.u.count;
    if (exchange->job.err != STORAGE_OK) {
        count_failed(exchange, &state->asked);
        return;
    }
    if (job->step == STEP_NONE || csv_asked(exchange)) {
        reply_table(exchange, state);
        return;
    }
    bool clamped = false;
    struct buffer series;
    buffer_init(&series);
    put_series(&series, state, job, &clamped);
    csv_dress(exchange);
    reply_json_with(
        &exchange->response, answer(exchange->app, state, job, clamped), "series", &series);
}
