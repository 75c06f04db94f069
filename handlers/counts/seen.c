/* seen.c - GET /seen: did this user view this page, or a page of this set? */
#include "handlers/routes.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

static const struct param_spec specs[] = {
    {"site", false}, {"user", false}, {"page", false}, {"pageset", false}};

struct seen_state {
    struct params params;
    struct slice page;
};

static void release(struct http_exchange *exchange)
{
    struct seen_state *state = exchange->state;
    params_release(&state->params);
    storage_job_release(&exchange->job);
    free(state);
}

/* False: the response says why. */
static bool read_param(struct http_exchange *exchange, const char *name,
    const char *(*check)(struct slice value), bool required, struct slice *ret)
{
    const struct seen_state *state = exchange->state;
    const char *fault = NULL;
    if (params_get(&state->params, name, ret)) {
        fault = check(*ret);
    } else if (required) {
        fault = "is required";
    }
    return fault == NULL || query_refuse(exchange, name, fault);
}

static const char *check_set(struct slice name)
{
    return name_valid(name) ? NULL : NAME_DETAIL;
}

static bool read_params(struct http_exchange *exchange, struct seen_job *job)
{
    struct seen_state *state = exchange->state;
    if (!query_read(exchange, specs, sizeof(specs) / sizeof(specs[0]), &state->params)) {
        return false;
    }
    struct slice *set = &job->set.name;
    job->site = EVENT_SITE_DEFAULT;
    return read_param(exchange, "site", event_check_site, false, &job->site) &&
           access_site(exchange, job->site) &&
           read_param(exchange, "user", event_check_user, true, &job->user) &&
           read_param(exchange, "pageset", check_set, false, set) &&
           read_param(exchange, "page", event_check_page, set->n == 0, &state->page);
}

enum handler_result seen_start(struct http_exchange *exchange)
{
    struct seen_state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return HANDLER_REPLY;
    }
    exchange->state = state;
    exchange->release = release;
    struct seen_job job = {0};
    if (!read_params(exchange, &job)) {
        return HANDLER_REPLY;
    }
    if (!exchange->app->seen) {
        problem_reply(&exchange->response, PROBLEM_UNACCEPTABLE,
            "nobody remembers: this server was started with --seen off");
        return HANDLER_REPLY;
    }
    job.pages = &state->page;
    job.n_pages = state->page.n > 0 ? 1 : 0;
    exchange->job.op = STORAGE_SEEN;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    exchange->job.u.seen = job;
    return HANDLER_WAIT;
}

void seen_finish(struct http_exchange *exchange)
{
    const struct storage_job *job = &exchange->job;
    if (job->err == STORAGE_NO_SET) {
        window_no_set(exchange, job->u.seen.site, job->u.seen.set.name);
        return;
    }
    if (job->err != STORAGE_OK) {
        problem_from_storage(&exchange->response, job->err, job->detail);
        return;
    }
    reply_json(&exchange->response, 200,
        json_pack("{s:b,s:b,s:f}", "seen", job->u.seen.seen, "certain", !job->u.seen.seen,
            "false_positive_rate", job->u.seen.false_positives));
}
