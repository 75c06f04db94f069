/* series.c - POST /grafana/query: a series, or a table, for each target of the request.
 *
 * Each target is one job for storage; the jobs are asked one after the other. */
#include "handlers/routes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "handlers/grafana/query.h"
#include "handlers/grafana/series_reply.h"
#include "handlers/http/app.h"
#include "handlers/question/count_reply.h"
#include "handlers/question/date_params.h"
#include "handlers/question/question.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/text/timestamp.h"
#include "storage/time/bucket.h"
#include "storage/time/units.h"

/* All series of an answer have so many points at most, because the thread that makes the answer has
 * other requests to serve. */
#define POINTS_MAX 200000

struct series_state {
    struct grafana_query query;
    size_t next;                   /* the target whose job is, or will be, under way */
    json_t *answer;                /* owned: the series of the targets before that one */
    size_t n_points;               /* points in the answer */
    bool coarser;                  /* the target's step is the one that storage said would work */
    struct activity_set *sets;     /* owned: the sets of the target at hand, if it asks for days */
    struct activity_count *counts; /* owned: the size of each set */
    size_t n_sets;
};

static const enum metric counted[] = {
    [GRAFANA_UV] = METRIC_UV,
    [GRAFANA_PV] = METRIC_PV,
    [GRAFANA_IPS] = METRIC_IPS,
    [GRAFANA_VISITS] = METRIC_VISITS,
};

static void forget_job(struct http_exchange *exchange)
{
    struct series_state *state = exchange->state;
    storage_job_release(&exchange->job);
    exchange->job = (struct storage_job){0};
    free(state->sets);
    free(state->counts);
    state->sets = NULL;
    state->counts = NULL;
}

static void release(struct http_exchange *exchange)
{
    struct series_state *state = exchange->state;
    forget_job(exchange);
    grafana_query_release(&state->query);
    json_decref(state->answer);
    free(state);
}

/* ---- jobs ---- */

/* The finest step that is no finer than the panel's interval and gives no more points than the
 * panel has room for. */
static enum step fitting_step(
    const struct grafana_query *query, const struct grafana_target *target)
{
    for (enum step step = STEP_MINUTE; step < STEP_MONTH; step++) {
        if (step_length_s(step) >= query->interval_s &&
            step_count(target->zone, step, target->window, query->max_points) <=
                query->max_points) {
            return step;
        }
    }
    return STEP_MONTH;
}

/* Does the target ask what visits were like? */
static bool is_of_visits(const struct grafana_target *target)
{
    return target->metric == GRAFANA_VIEWS_PER_VISIT || target->metric == GRAFANA_BOUNCE_RATE ||
           target->metric == GRAFANA_VISIT_DURATION;
}

static enum handler_result ask_counts(struct http_exchange *exchange)
{
    struct series_state *state = exchange->state;
    struct grafana_target *target = &state->query.targets[state->next];
    if (target->step == STEP_AUTO) {
        target->step = fitting_step(&state->query, target);
    }
    exchange->job.op = STORAGE_COUNT;
    exchange->job.u.count = (struct count_job){
        .asked = {.site = target->site,
            .window = target->window,
            .to_is_now = target->to_is_now,
            .round_outer = true},
        .metric = is_of_visits(target) ? METRIC_VISITS : counted[target->metric],
        .all_metrics = is_of_visits(target),
        .visit_sums = is_of_visits(target),
        .pages = target->pages,
        .n_pages = target->n_pages,
        .set = {.name = target->set},
        .bounded = true,
        .step = target->whole_window ? STEP_NONE : target->step,
        .zone = target->zone,
    };
    return HANDLER_WAIT;
}

/* The days that the window touches, in the site's own calendar.  Returns how many; *ret_first is
 * the first. */
static size_t days_of(
    const struct http_exchange *exchange, const struct grafana_target *target, int64_t *ret_first)
{
    const struct zone *zone = storage_site_zone(exchange->app->storage, target->site);
    *ret_first = bucket_day(zone, target->window.from_s);
    return (size_t)(bucket_day(zone, target->window.to_s - 1) + 1 - *ret_first);
}

/* Make a set for each day, or one set for the whole window.  If the panel has no room for all days,
 * some days are left out.  False: memory is out, and the response says so. */
static bool make_sets(struct http_exchange *exchange, struct grafana_target *target)
{
    struct series_state *state = exchange->state;
    int64_t first;
    size_t n = days_of(exchange, target, &first);
    size_t room = state->query.max_points;
    size_t every = target->whole_window ? n : (n + room - 1) / room;
    state->n_sets = (n + every - 1) / every;
    state->sets = calloc(state->n_sets, sizeof(*state->sets));
    state->counts = calloc(state->n_sets, sizeof(*state->counts));
    if (state->sets == NULL || state->counts == NULL) {
        return problem_no_memory(&exchange->response);
    }
    for (size_t i = 0; i < state->n_sets; i++) {
        state->sets[i] = (struct activity_set){.n_actions = 1,
            .days = {.first = first + (int64_t)(i * every), .n = target->whole_window ? n : 1}};
        state->counts[i] = (struct activity_count){.a = (uint32_t)i, .b = (uint32_t)i};
    }
    if (every > 1 && !target->whole_window) {
        grafana_notice(target, "info", "one day of %zu is shown", every);
    }
    return true;
}

static enum handler_result ask_days(struct http_exchange *exchange)
{
    struct series_state *state = exchange->state;
    struct grafana_target *target = &state->query.targets[state->next];
    int64_t first;
    if (days_of(exchange, target, &first) > ACTIVITY_PAIRS_MAX) {
        grafana_problem(
            exchange, target, PROBLEM_UNACCEPTABLE, "at most %d days", ACTIVITY_PAIRS_MAX);
        return HANDLER_REPLY;
    }
    if (!make_sets(exchange, target)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_ACTIVITY;
    exchange->job.u.activity = (struct activity_job){
        .asked = {.site = target->site,
            .actions = &target->action,
            .n_actions = 1,
            .sets = state->sets,
            .n_sets = state->n_sets},
        .counts = state->counts,
        .n_counts = state->n_sets,
    };
    return HANDLER_WAIT;
}

static enum handler_result ask_target(
    struct http_exchange *exchange, const struct grafana_target *target)
{
    if (target->metric == GRAFANA_BREAKDOWN) {
        exchange->job.op = STORAGE_PAGES;
        struct window_question asked = {.site = target->site,
            .window = target->window,
            .to_is_now = target->to_is_now,
            .round_outer = true};
        exchange->job.u.pages = grafana_breakdown_job(&target->breakdown, &asked);
        return HANDLER_WAIT;
    }
    return target->metric == GRAFANA_DAU ? ask_days(exchange) : ask_counts(exchange);
}

/* Fill the job of the next target that needs one.  If there is none, fill the response. */
static enum handler_result ask_next(struct http_exchange *exchange)
{
    struct series_state *state = exchange->state;
    for (; state->next < state->query.n_targets; state->next++) {
        struct grafana_target *target = &state->query.targets[state->next];
        if (!target->nothing) {
            state->coarser = false;
            return ask_target(exchange, target);
        }
        grafana_notice(target, "info", "no page passes all filters");
        grafana_add_series(state->answer, target, json_array());
    }
    reply_json(&exchange->response, 200, state->answer);
    state->answer = NULL;
    return HANDLER_REPLY;
}

enum handler_result grafana_query_start(struct http_exchange *exchange)
{
    struct series_state *state = question_begin(exchange, sizeof(*state), release);
    if (state == NULL) {
        return HANDLER_REPLY;
    }
    state->answer = json_array();
    if (!grafana_query_read(exchange, &state->query)) {
        return HANDLER_REPLY;
    }
    return ask_next(exchange);
}

/* ---- results ---- */

/* Add a notice if the window of one figure, or of a table, was rounded outwards.  (A series needs
 * no notice, because its points show it.) */
static void note_window(struct grafana_target *target, const struct window_question *asked)
{
    struct window took = asked->answered;
    bool moved = took.from_s != target->window.from_s ||
                 (!asked->to_is_now && took.to_s != target->window.to_s);
    if (moved) {
        char from[TIMESTAMP_TEXT];
        char to[TIMESTAMP_TEXT];
        timestamp_print(took.from_s, from);
        timestamp_print(took.to_s, to);
        grafana_notice(target, "info",
            "counted from %s to %s: this time range is kept by the hour, day or month only", from,
            to);
    }
}

/* Add a notice if the figure of @window may count a visitor twice.  False: it does not. */
static bool note_rotation(
    const struct app *app, struct grafana_target *target, struct window window)
{
    bool spans = target->metric != GRAFANA_PV && storage_spans_rotation(app->storage, window);
    if (spans) {
        grafana_notice(target, "info",
            "a visitor may be counted more than once: visitors are hashed anew in this time range");
    }
    return spans;
}

static void take_count(const struct count_job *job, const struct grafana_target *target,
    json_t *points, int64_t at_s, const uint64_t *values)
{
    if (is_of_visits(target)) {
        grafana_add_visits(points, target, at_s, values);
    } else {
        grafana_add_count(points, target, at_s, values[job->metric]);
    }
}

static void take_counts(struct http_exchange *exchange, struct grafana_target *target)
{
    struct series_state *state = exchange->state;
    const struct count_job *job = &exchange->job.u.count;
    json_t *points = json_array();
    bool noted = false;
    if (job->at_most > 0) {
        grafana_notice(target, "info",
            "names beyond a cap were put together: over this time range it may be up to %" PRIu64,
            job->at_most);
    }
    if (target->whole_window) {
        note_window(target, &job->asked);
        noted = note_rotation(exchange->app, target, job->asked.answered);
        take_count(job, target, points, job->asked.answered.to_s, job->values);
    }
    for (size_t i = 0; i < job->n_points; i++) {
        noted = noted || note_rotation(exchange->app, target, job->points[i].window);
        take_count(job, target, points, job->points[i].window.from_s, job->points[i].values);
    }
    grafana_add_series(state->answer, target, points);
}

static void take_days(struct http_exchange *exchange, struct grafana_target *target)
{
    struct series_state *state = exchange->state;
    const struct zone *zone = storage_site_zone(exchange->app->storage, target->site);
    json_t *points = json_array();
    for (size_t i = 0; i < state->n_sets; i++) {
        int64_t day =
            state->sets[i].days.first + (target->whole_window ? (int64_t)state->sets[i].days.n : 0);
        int64_t at_s = zone_first_at(zone, day * DAY_S);
        bool is_there = target->whole_window || zone_first_at(zone, (day + 1) * DAY_S) > at_s;
        if (is_there) { /* else the clocks of the zone were put forward by a day, over this one */
            grafana_add_count(points, target, at_s, state->counts[i].users);
        }
    }
    grafana_add_series(state->answer, target, points);
}

/* Answer for the job, which failed, and say which of the panel's queries it was. */
static void reply_failed(struct http_exchange *exchange, const struct grafana_target *target)
{
    const struct storage_job *job = &exchange->job;
    char date[11];
    char detail[COUNT_STEP_DETAIL];
    if (job->err == STORAGE_NOT_KEPT && job->op == STORAGE_ACTIVITY) {
        date_print(job->u.activity.oldest_day, date);
        grafana_problem(
            exchange, target, PROBLEM_UNACCEPTABLE, "days before %s are not kept any more", date);
    } else if (job->err == STORAGE_NOT_KEPT) {
        grafana_problem(
            exchange, target, PROBLEM_UNACCEPTABLE, "nothing of this time range is kept any more");
    } else if (job->err == STORAGE_TOO_FINE || job->err == STORAGE_TOO_MANY) {
        count_step_detail(job, detail, sizeof(detail));
        grafana_problem(exchange, target, PROBLEM_UNACCEPTABLE, "%s", detail);
    } else if (job->err == STORAGE_TOO_BROAD) {
        grafana_problem(
            exchange, target, PROBLEM_UNACCEPTABLE, "too many pages or points for this time range");
    } else if (job->err == STORAGE_NO_SET) {
        grafana_problem(exchange, target, PROBLEM_NOT_FOUND,
            "pageset: site %.*s has no page set %.*s", (int)target->site.n, target->site.p,
            (int)target->set.n, target->set.p);
    } else {
        problem_from_storage(&exchange->response, job->err, job->detail);
    }
}

/* Count the points of the target at hand.  False: the answer has too many, and the response says
 * so. */
static bool count_points(struct http_exchange *exchange, const struct grafana_target *target)
{
    struct series_state *state = exchange->state;
    const struct storage_job *job = &exchange->job;
    state->n_points += job->op == STORAGE_ACTIVITY ? state->n_sets
                       : job->op == STORAGE_PAGES  ? job->u.pages.n_rows
                                                   : job->u.count.n_points;
    if (state->n_points > POINTS_MAX) {
        grafana_problem(exchange, target, PROBLEM_UNACCEPTABLE,
            "with this one the answer has more than %d points: choose a coarser step, or fewer "
            "queries",
            POINTS_MAX);
        return false;
    }
    return true;
}

void grafana_query_finish(struct http_exchange *exchange)
{
    struct series_state *state = exchange->state;
    struct grafana_target *target = &state->query.targets[state->next];
    const struct storage_job *job = &exchange->job;
    enum step used = job->op == STORAGE_COUNT ? job->u.count.used : STEP_NONE;
    bool too_fine = job->err == STORAGE_TOO_FINE || job->err == STORAGE_TOO_MANY ||
                    job->err == STORAGE_TOO_BROAD;
    if (too_fine && !state->coarser && used != STEP_NONE) {
        grafana_notice(
            target, "info", "%s is the finest step for this time range", step_name(used));
        forget_job(exchange);
        target->step = used;
        state->coarser = true;
        exchange->again = ask_counts(exchange) == HANDLER_WAIT;
        return;
    }
    if (job->err != STORAGE_OK) {
        reply_failed(exchange, target);
        return;
    }
    if (!count_points(exchange, target)) {
        return;
    }
    if (target->metric == GRAFANA_DAU) {
        take_days(exchange, target);
    } else if (target->metric == GRAFANA_BREAKDOWN) {
        target->table = true;
        note_window(target, &job->u.pages.asked);
        if (target->breakdown.class.with_uv) {
            (void)note_rotation(exchange->app, target, job->u.pages.asked.answered);
        }
        grafana_add_series(
            state->answer, target, grafana_breakdown_rows(&target->breakdown, &job->u.pages));
    } else {
        take_counts(exchange, target);
    }
    forget_job(exchange);
    state->next++;
    exchange->again = ask_next(exchange) == HANDLER_WAIT;
}
