/* seen.c - /seen: did a user view this page, or a page of this set (GET), or which of these (POST)?
 *
 * Pages are named as events name them, and a rule may count a page under another name
 * (dimension/page_rules.h).  Both names are looked for: views from before the rule have the first.
 */
#include "handlers/routes.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/counts/seen_json.h"
#include "handlers/dimension/page_rules.h"
#include "handlers/http/app.h"
#include "handlers/question/question.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/json_object.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

static const struct param_spec specs[] = {
    {"site", false}, {"user", false}, {"page", false}, {"pageset", false}};

/* What the slices of the job point into. */
struct seen_state {
    struct params params;
    struct slice page;     /* the page that a GET asks for */
    struct seen_body body; /* the body of a POST */
    bool *each;            /* owned: the answer of a POST for each page of the body */
};

static void release(struct http_exchange *exchange)
{
    struct seen_state *state = exchange->state;
    params_release(&state->params);
    seen_body_release(&state->body);
    free(state->each);
    free(state);
}

static struct slice name_by_rules(const void *app, struct slice page)
{
    return page_rules_apply(app, page);
}

/* Fill the job that asks what @job says, unless nothing is remembered here. */
static enum handler_result ask(struct http_exchange *exchange, const struct seen_job *job)
{
    if (!exchange->app->seen) {
        problem_reply(&exchange->response, PROBLEM_UNACCEPTABLE,
            "nobody remembers: this server was started with --seen off");
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_SEEN;
    exchange->job.u.seen = *job;
    exchange->job.u.seen.other_name = name_by_rules;
    exchange->job.u.seen.names = exchange->app;
    return HANDLER_WAIT;
}

/* ---- GET ---- */

/* Read the query of a GET into @job.  False: the response says what is wrong. */
static bool read_params(struct http_exchange *exchange, struct seen_job *job)
{
    struct seen_state *state = exchange->state;
    if (!query_read(exchange, PARAM_SPECS(specs), &state->params)) {
        return false;
    }
    const struct params *params = &state->params;
    struct slice *set = &job->set.name;
    return access_read_site(exchange, params, &job->site) && query_has(exchange, params, "user") &&
           query_text(exchange, params, "user", event_check_user, &job->user) &&
           query_text(exchange, params, "pageset", name_check, set) &&
           (set->n > 0 || query_has(exchange, params, "page")) &&
           query_text(exchange, params, "page", event_check_page, &state->page);
}

enum handler_result seen_start(struct http_exchange *exchange)
{
    struct seen_state *state = question_begin(exchange, sizeof(*state), release);
    struct seen_job job = {0};
    if (state == NULL || !read_params(exchange, &job)) {
        return HANDLER_REPLY;
    }
    job.pages = &state->page;
    job.n_pages = state->page.n > 0 ? 1 : 0;
    return ask(exchange, &job);
}

/* ---- POST ---- */

/* Read the site: the body may name it, as events do, or the query.  False: both do, or the token
 * may not read the site, and the response says so. */
static bool read_site(struct http_exchange *exchange, struct seen_job *job)
{
    const struct seen_state *state = exchange->state;
    if (state->body.site.p == NULL) {
        return access_read_site(exchange, &state->params, &job->site);
    }
    job->site = state->body.site;
    return (!params_has(&state->params, "site") ||
               json_object_refuse(
                   exchange, "/site", "site must be given once: here, or in the query")) &&
           access_site(exchange, job->site);
}

static bool read_body(struct http_exchange *exchange, struct seen_job *job)
{
    struct seen_state *state = exchange->state;
    struct seen_body *body = &state->body;
    struct seen_json_fault fault;
    const struct http_request *request = &exchange->request;
    switch (seen_json_decode(request->body_bytes, request->body.n, body, &fault)) {
    case SEEN_JSON_OK:
        break;
    case SEEN_JSON_MALFORMED:
        problem_reply(&exchange->response, PROBLEM_MALFORMED, "line %zu, column %zu: %s",
            fault.line, fault.column, fault.detail);
        return false;
    case SEEN_JSON_UNACCEPTABLE:
        return json_object_refuse(exchange, fault.pointer, fault.detail);
    case SEEN_JSON_NOMEM:
        return problem_no_memory(&exchange->response);
    }
    job->user = body->user;
    job->pages = body->pages;
    job->n_pages = body->n;
    job->each = state->each = calloc(body->n, sizeof(*state->each));
    if (state->each == NULL) {
        return problem_no_memory(&exchange->response);
    }
    return read_site(exchange, job);
}

enum handler_result seen_many_start(struct http_exchange *exchange)
{
    struct seen_state *state = question_begin(exchange, sizeof(*state), release);
    struct seen_job job = {0};
    if (state == NULL || !query_read(exchange, specs, 1, &state->params) ||
        !json_body_type(exchange, false) || !read_body(exchange, &job)) {
        return HANDLER_REPLY;
    }
    return ask(exchange, &job);
}

/* ---- answers ---- */

static void put_flags(struct buffer *out, const bool *flags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buffer_text(out, i == 0 ? "[" : ",");
        buffer_text(out, flags[i] ? "true" : "false");
    }
    buffer_text(out, n == 0 ? "[]" : "]");
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
    const struct seen_job *seen = &job->u.seen;
    if (seen->each != NULL) {
        struct buffer list;
        buffer_init(&list);
        put_flags(&list, seen->each, seen->n_pages);
        reply_json_with(&exchange->response,
            json_pack("{s:f}", "false_positive_rate", seen->false_positives), "seen", &list);
        return;
    }
    reply_json(&exchange->response, 200,
        json_pack("{s:b,s:b,s:f}", "seen", seen->seen, "certain", !seen->seen,
            "false_positive_rate", seen->false_positives));
}
