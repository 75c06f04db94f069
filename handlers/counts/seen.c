/* seen.c - /seen: did this user view this page, or a page of this set (GET); which of these (POST)?
 */
#include "handlers/routes.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/question/question.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/json_object.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

#define PAGES_MAX 1000 /* of one POST */

static const struct param_spec specs[] = {
    {"site", false}, {"user", false}, {"page", false}, {"pageset", false}};

/* What outlives the start of an exchange; the slices of the job point into it. */
struct seen_state {
    struct params params;
    struct slice page;   /* of a GET */
    json_t *body;        /* of a POST: owned.. */
    char user[24];       /* ..its user where that is an integer.. */
    struct slice *pages; /* ..and its pages; owned */
    bool *each;          /* the answers; owned */
};

static void release(struct http_exchange *exchange)
{
    struct seen_state *state = exchange->state;
    params_release(&state->params);
    storage_job_release(&exchange->job);
    json_decref(state->body);
    free(state->pages);
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
           read_param(exchange, "page", event_check_page, set->n == 0, &state->page);
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

static bool read_user(struct http_exchange *exchange, struct seen_job *job)
{
    struct seen_state *state = exchange->state;
    const json_t *value = json_object_get(state->body, "user");
    if (json_is_integer(value)) {
        int n = snprintf(
            state->user, sizeof(state->user), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        job->user = (struct slice){state->user, (size_t)n};
        return true;
    }
    job->user = json_text_of(value);
    const char *fault = value == NULL            ? "user is required"
                        : !json_is_string(value) ? "user must be a string or an integer"
                                                 : event_check_user(job->user);
    return fault == NULL || json_object_refuse(exchange, "/user", fault);
}

/* The body may name the site, as an event does; else the query does. */
static bool read_site(struct http_exchange *exchange, struct seen_job *job)
{
    struct seen_state *state = exchange->state;
    const json_t *value = json_object_get(state->body, "site");
    if (value == NULL) {
        return access_read_site(exchange, &state->params, &job->site);
    }
    job->site = json_text_of(value);
    const char *fault = params_count(&state->params, "site") > 0
                            ? "site must be given once: here, or in the query"
                        : !json_is_string(value) ? "site must be a string"
                                                 : event_check_site(job->site);
    return (fault == NULL || json_object_refuse(exchange, "/site", fault)) &&
           access_site(exchange, job->site);
}

static bool read_page(struct http_exchange *exchange, const json_t *list, size_t i)
{
    struct seen_state *state = exchange->state;
    const json_t *value = json_array_get(list, i);
    state->pages[i] = json_text_of(value);
    const char *fault =
        json_is_string(value) ? event_check_page(state->pages[i]) : "a page must be a string";
    if (fault != NULL) {
        char pointer[32];
        (void)snprintf(pointer, sizeof(pointer), "/pages/%zu", i);
        return json_object_refuse(exchange, pointer, fault);
    }
    return true;
}

static bool read_pages(struct http_exchange *exchange, struct seen_job *job)
{
    struct seen_state *state = exchange->state;
    const json_t *list = json_object_get(state->body, "pages");
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > PAGES_MAX) {
        return json_object_refuse(exchange, "/pages", "pages must be an array of 1 to 1000 pages");
    }
    job->n_pages = json_array_size(list);
    job->pages = state->pages = calloc(job->n_pages, sizeof(*state->pages));
    job->each = state->each = calloc(job->n_pages, sizeof(*state->each));
    if (state->pages == NULL || state->each == NULL) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
        return false;
    }
    for (size_t i = 0; i < job->n_pages; i++) {
        if (!read_page(exchange, list, i)) {
            return false;
        }
    }
    return true;
}

enum handler_result seen_many_start(struct http_exchange *exchange)
{
    static const char *const names[] = {"site", "user", "pages"};
    struct seen_state *state = question_begin(exchange, sizeof(*state), release);
    struct seen_job job = {0};
    if (state == NULL || !query_read(exchange, specs, 1, &state->params)) {
        return HANDLER_REPLY;
    }
    state->body = json_object_body(exchange);
    if (state->body == NULL || !json_object_only(exchange, state->body, names, 3) ||
        !read_site(exchange, &job) || !read_user(exchange, &job) || !read_pages(exchange, &job)) {
        return HANDLER_REPLY;
    }
    return ask(exchange, &job);
}

/* ---- answers ---- */

static json_t *each_json(const struct seen_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < job->n_pages; i++) {
        json_array_append_new(list, json_boolean(job->each[i]));
    }
    return list;
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
    json_t *root = seen->each != NULL
                       ? json_pack("{s:o,s:f}", "seen", each_json(seen), "false_positive_rate",
                             seen->false_positives)
                       : json_pack("{s:b,s:b,s:f}", "seen", seen->seen, "certain", !seen->seen,
                             "false_positive_rate", seen->false_positives);
    reply_json(&exchange->response, 200, root);
}
