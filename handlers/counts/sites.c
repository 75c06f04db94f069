/* sites.c - GET /sites: the sites that have had events and that the token may read; with a window,
 * their figures.
 *
 * The figures of a site are two jobs for storage: one for the window, and one for `now`, the
 * visitors of the last minutes.  The jobs of all sites are asked one after the other. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/question/question.h"
#include "handlers/question/window_params.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"

#define NOW_S       300  /* `now` counts the visitors of the last so many seconds */
#define FIGURES_MAX 1000 /* an answer has figures of so many sites at most */
#define HOW_MAX     128  /* bytes of the text behind a window, with its NUL */

struct sites_state {
    struct window_params asked;
    bool figures;          /* figures are asked for */
    struct sites_job list; /* owned: all sites, once storage has answered */
    size_t next;     /* position in the list of the site whose job is, or will be, under way */
    bool now;        /* that job is the site's second one */
    bool clamped;    /* an estimate of visitors was above the page views, and was cut */
    bool rotated;    /* visitors may be counted more than once */
    bool own_window; /* the site was answered over another window than was asked for */
    struct window answered; /* the window that the site was answered over */
    json_t *row;            /* owned: the row of that site, after its first job */
    json_t *rows;           /* owned: the rows of the sites before it */
};

static const struct csv_shape names_shape = {"sites", {"sites"}};
static const struct csv_shape figures_shape = {"sites", {"site", "pv", "uv", "visits", "now"}};

static void release(struct http_exchange *exchange)
{
    struct sites_state *state = exchange->state;
    struct storage_job list = {.op = STORAGE_SITES, .u.sites = state->list};
    storage_job_release(&list);
    window_params_release(&state->asked);
    json_decref(state->row);
    json_decref(state->rows);
    free(state);
}

enum handler_result sites_start(struct http_exchange *exchange)
{
    struct sites_state *state = question_begin(exchange, sizeof(*state), release);
    if (state == NULL || !window_params_read_all_sites(exchange, &state->asked, &state->figures)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_SITES;
    exchange->job.u.sites = (struct sites_job){0};
    return HANDLER_WAIT;
}

/* Fill the job for the site at hand. */
static void ask_figures(struct http_exchange *exchange)
{
    struct sites_state *state = exchange->state;
    struct window_question asked = window_params_question(&state->asked);
    asked.site = state->list.sites[state->next];
    if (state->now) {
        asked.window.to_s =
            bucket_at(zone_utc(), LEVEL_MINUTE, exchange->request.now_ms / 1000).end_s;
        asked.window.from_s = asked.window.to_s - NOW_S;
        asked.to_is_now = true;
    }
    exchange->job.op = STORAGE_COUNT;
    exchange->job.u.count = (struct count_job){
        .asked = asked,
        .metric = METRIC_UV,
        .all_metrics = true,
        .step = STEP_NONE,
        .zone = state->asked.zone,
    };
    exchange->again = true;
}

static void add_window(json_t *object, struct window window)
{
    json_object_set_new(object, "from", window_time_json(window.from_s));
    json_object_set_new(object, "to", window_time_json(window.to_s));
}

static void reply(struct http_exchange *exchange)
{
    struct sites_state *state = exchange->state;
    json_t *root = json_object();
    if (state->figures) {
        add_window(root, state->asked.window);
        json_object_set_new(root, "tz", json_string(zone_name(state->asked.zone)));
    }
    json_object_set(root, "sites", state->rows);
    flag_json(root, "clamped", state->clamped);
    if (state->figures && json_array_size(state->rows) == FIGURES_MAX) {
        json_object_set_new(root, "truncated", json_boolean(state->next < state->list.n_sites));
    }
    flag_json(root, "spans_rotation", state->rotated);
    csv_reply(exchange, 200, root, state->figures ? &figures_shape : &names_shape);
}

/* Take the result of a job: make the row of the site after the first job, complete it after the
 * second. */
static void take_figures(struct http_exchange *exchange)
{
    struct sites_state *state = exchange->state;
    const struct count_job *job = &exchange->job.u.count;
    uint64_t pv = job->values[METRIC_PV];
    uint64_t estimate = job->values[METRIC_UV], uv = estimate > pv ? pv : estimate;
    struct window answered = job->asked.answered;
    state->clamped = state->clamped || uv < estimate;
    state->rotated = state->rotated || storage_spans_rotation(exchange->app->storage, answered);
    if (!state->now) {
        struct slice site = state->list.sites[state->next];
        state->row =
            json_pack("{s:o,s:I,s:I,s:I}", "site", text_json(site), "pv", window_figure(pv), "uv",
                window_figure(uv), "visits", window_figure(job->values[METRIC_VISITS]));
        struct window asked = state->asked.window;
        state->own_window = answered.from_s != asked.from_s || answered.to_s != asked.to_s;
        state->answered = answered;
    } else {
        json_object_set_new(state->row, "now", json_integer(window_figure(uv)));
        if (state->own_window) {
            add_window(state->row, state->answered);
        }
        json_array_append_new(state->rows, state->row);
        state->row = NULL;
        state->next++;
    }
    state->now = !state->now;
}

/* Fill the job for the next site that the token may read, or answer if there is none. */
static void go_on(struct http_exchange *exchange)
{
    struct sites_state *state = exchange->state;
    for (; state->next < state->list.n_sites; state->next++) {
        struct slice site = state->list.sites[state->next];
        if (!access_has_site(exchange, site)) {
            continue;
        }
        if (!state->figures) {
            json_array_append_new(state->rows, text_json(site));
        } else if (json_array_size(state->rows) < FIGURES_MAX) {
            ask_figures(exchange);
            return;
        } else {
            break;
        }
    }
    reply(exchange);
}

/* The window is not kept for the site at hand.  The nearest window may differ between sites of
 * different zones, so the answer says for which site this one is. */
static void refuse_window(struct http_exchange *exchange)
{
    const struct count_job *job = &exchange->job.u.count;
    char how[HOW_MAX];
    (void)snprintf(how, sizeof(how), " for site %.*s (round=outer takes each site's own)",
        (int)job->asked.site.n, job->asked.site.p);
    window_not_kept(exchange, job->asked.answered, how);
}

void sites_finish(struct http_exchange *exchange)
{
    struct sites_state *state = exchange->state;
    struct storage_job *job = &exchange->job;
    if (job->op == STORAGE_SITES && job->err == STORAGE_OK) {
        state->list = job->u.sites;
        job->u.sites = (struct sites_job){0};
        state->rows = json_array();
    } else if (job->err == STORAGE_NOT_KEPT && job->op == STORAGE_COUNT) {
        refuse_window(exchange);
        return;
    } else if (job->err != STORAGE_OK && job->op == STORAGE_COUNT) {
        window_failed(exchange, &state->asked, job->u.count.asked.answered);
        return;
    } else if (job->err != STORAGE_OK) {
        problem_from_storage(&exchange->response, job->err, job->detail);
        return;
    } else {
        take_figures(exchange);
    }
    storage_job_release(job);
    go_on(exchange);
}
