/* seen.c - /seen: did this user view this page, or a page of this set (GET); which of these (POST)?
 *
 * Who asks names a page as events do, and a rule may count the page under another name
 * (dimension/page_rules.h).  Both names are looked for: a view from before the rule has the first.
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

/* What outlives the start of an exchange; the slices of the job point into it. */
struct seen_state {
    struct params params;
    struct slice page[2];  /* of a GET: both names of the page */
    struct seen_body body; /* of a POST.. */
    struct slice *names;   /* ..both names of each of its pages, owned.. */
    bool *each;            /* ..and whether they were seen, owned */
    bool is_mapped;        /* a rule maps one of the pages */
};

static void release(struct http_exchange *exchange)
{
    struct seen_state *state = exchange->state;
    params_release(&state->params);
    storage_job_release(&exchange->job);
    seen_body_release(&state->body);
    free(state->names);
    free(state->each);
    free(state);
}

/* The question was read. */
static enum handler_result ask(struct http_exchange *exchange, const struct seen_job *job)
{
    if (!exchange->app->seen) {
        problem_reply(&exchange->response, PROBLEM_UNACCEPTABLE,
            "nobody remembers: this server was started with --seen off");
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_SEEN;
    exchange->job.u.seen = *job;
    return HANDLER_WAIT;
}

/* ---- GET ---- */

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
           read_param(exchange, "page", event_check_page, set->n == 0, &state->page[0]);
}

enum handler_result seen_start(struct http_exchange *exchange)
{
    struct seen_state *state = question_begin(exchange, sizeof(*state), release);
    struct seen_job job = {0};
    if (state == NULL || !read_params(exchange, &job)) {
        return HANDLER_REPLY;
    }
    job.pages = state->page;
    if (state->page[0].n > 0) {
        state->page[1] = page_rules_apply(exchange->app, state->page[0]);
        job.n_pages = slice_equal(state->page[0], state->page[1]) ? 1 : 2;
    }
    return ask(exchange, &job);
}

/* ---- POST ---- */

static bool refuse_body(struct http_exchange *exchange, enum seen_json_result result,
    const struct seen_json_fault *fault)
{
    if (result == SEEN_JSON_UNACCEPTABLE) {
        return json_object_refuse(exchange, fault->pointer, fault->detail);
    }
    if (result == SEEN_JSON_MALFORMED) {
        problem_reply(&exchange->response, PROBLEM_MALFORMED, "line %zu, column %zu: %s",
            fault->line, fault->column, fault->detail);
    } else {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
    }
    return false;
}

/* The body may name the site, as an event does; else the query does. */
static bool read_site(struct http_exchange *exchange, struct seen_job *job)
{
    const struct seen_state *state = exchange->state;
    if (state->body.site.p == NULL) {
        return access_read_site(exchange, &state->params, &job->site);
    }
    job->site = state->body.site;
    return (params_count(&state->params, "site") == 0 ||
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
    enum seen_json_result result =
        seen_json_decode(request->body_bytes, request->body.n, body, &fault);
    if (result != SEEN_JSON_OK) {
        return refuse_body(exchange, result, &fault);
    }
    job->user = body->user;
    job->n_pages = 2 * body->n;
    job->pages = state->names = calloc(job->n_pages, sizeof(*state->names));
    job->each = state->each = calloc(job->n_pages, sizeof(*state->each));
    if (state->names == NULL || state->each == NULL) {
        return refuse_body(exchange, SEEN_JSON_NOMEM, &fault);
    }
    for (size_t i = 0; i < body->n; i++) {
        state->names[2 * i] = body->pages[i];
        state->names[2 * i + 1] = page_rules_apply(exchange->app, body->pages[i]);
        state->is_mapped |= !slice_equal(state->names[2 * i], state->names[2 * i + 1]);
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

/* @flags: two for each of @n pages, one a name. */
static void put_flags(struct buffer *out, const bool *flags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buffer_text(out, i == 0 ? "[" : ",");
        buffer_text(out, flags[2 * i] || flags[2 * i + 1] ? "true" : "false");
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
        const struct seen_state *state = exchange->state;
        double p = seen->false_positives;
        struct buffer list;
        buffer_init(&list);
        put_flags(&list, seen->each, seen->n_pages / 2);
        reply_json_with(&exchange->response,
            json_pack("{s:f}", "false_positive_rate", state->is_mapped ? p + p - p * p : p), "seen",
            &list);
        return;
    }
    reply_json(&exchange->response, 200,
        json_pack("{s:b,s:b,s:f}", "seen", seen->seen, "certain", !seen->seen,
            "false_positive_rate", seen->false_positives));
}
