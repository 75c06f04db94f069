/* ratelimit.c - POST /ratelimit, GET /ratelimit/check, DELETE /ratelimit: rate limits for other
 * services.
 *
 * A policy is one limit or several under a name, from the configuration file.  Each policy has keys
 * of its own: the same key under two policies is limited twice. */
#include "handlers/routes.h"

#include "handlers/http/app.h"
#include "handlers/limit/limit_json.h"
#include "handlers/limit/limit_reply.h"
#include "handlers/reply/json_body.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

static const struct limit_policy *find_policy(const struct app *app, struct slice name)
{
    for (size_t i = 0; i < app->n_policies; i++) {
        if (slice_equal(app->policies[i].name, name)) {
            return &app->policies[i];
        }
    }
    return NULL;
}

static enum handler_result ask(
    struct http_exchange *exchange, struct slice key, const struct limit *limit, int64_t cost)
{
    exchange->job.op = STORAGE_LIMIT;
    exchange->job.u.limit =
        (struct limit_job){.limit = *limit, .key = key, .need = cost, .want = cost};
    return HANDLER_WAIT;
}

/* A policy of one limit alone is asked like a limit without a policy, which costs half as much. */
static enum handler_result ask_policy(struct http_exchange *exchange, struct slice key,
    const struct limit_policy *policy, int64_t cost)
{
    const struct limit_set *set = &policy->set;
    enum handler_result result = ask(exchange, key, &set->limits[0], cost);
    exchange->job.u.limit.policy = policy->name;
    if (set->n > 1 || set->penalty.refusals > 0) {
        exchange->job.u.limit.set = set;
    }
    return result;
}

/* ---- the query string ---- */

static const struct param_spec key_and_policy[] = {{"key", false}, {"policy", false}};

static bool read_key(struct http_exchange *exchange, const struct params *params, struct slice *ret)
{
    if (!params_get(params, "key", ret)) {
        return query_refuse(exchange, "key", "key is required");
    }
    return ret->n <= LIMIT_KEY_MAX ||
           query_refuse(exchange, "key", "key must be of 1 to 256 bytes");
}

static const struct limit_policy *read_policy(struct http_exchange *exchange, struct slice name)
{
    const struct limit_policy *policy = find_policy(exchange->app, name);
    if (!name_valid(name)) {
        (void)query_refuse(exchange, "policy", "the name of a policy is [A-Za-z0-9._-]{1,64}");
    } else if (policy == NULL) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "policy",
            "there is no such policy: a line policy.NAME of the configuration file makes one");
    }
    return policy;
}

/* ---- POST /ratelimit ---- */

static void refuse_member(struct http_exchange *exchange, const struct limit_json_fault *fault)
{
    problem_reply_errors(&exchange->response, PROBLEM_UNACCEPTABLE,
        json_pack("[{s:s,s:s}]", "pointer", fault->pointer, "detail", fault->detail), "%s%s%s",
        fault->pointer[0] == '/' ? fault->pointer + 1 : "the body",
        fault->detail[0] == '\0' ? "" : " ", fault->detail);
}

enum handler_result ratelimit_start(struct http_exchange *exchange)
{
    struct http_request *request = &exchange->request;
    struct limit_question question;
    struct limit_json_fault fault;
    if (!query_empty(exchange) || !json_body_type(exchange, false)) {
        return HANDLER_REPLY;
    }
    switch (limit_json_decode(request->body_bytes, request->body.n, &question, &fault)) {
    case LIMIT_JSON_OK:
        break;
    case LIMIT_JSON_MALFORMED:
        problem_reply(&exchange->response, PROBLEM_MALFORMED, "line %zu, column %zu: %s",
            fault.line, fault.column, fault.detail);
        return HANDLER_REPLY;
    case LIMIT_JSON_UNACCEPTABLE:
        refuse_member(exchange, &fault);
        return HANDLER_REPLY;
    }
    if (question.policy.n > 0) {
        const struct limit_policy *policy = find_policy(exchange->app, question.policy);
        if (policy == NULL) {
            refuse_member(exchange,
                &(struct limit_json_fault){.pointer = "/policy",
                    .detail =
                        "is not known: a line policy.NAME of the configuration file makes one"});
            return HANDLER_REPLY;
        }
        return ask_policy(exchange, question.key, policy, question.cost);
    }
    return ask(exchange, question.key, &question.limit, question.cost);
}

static struct slice name_of(const struct limit_job *job)
{
    return job->policy.n > 0 ? job->policy : LIMIT_NAME_DEFAULT;
}

/* The limit or penalty that refused, in the configuration's words.  NULL: the limit was in the
 * body. */
static const char *limited_by(const struct app *app, const struct limit_job *job)
{
    const struct limit_policy *policy = job->policy.n > 0 ? find_policy(app, job->policy) : NULL;
    if (policy == NULL) {
        return NULL;
    }
    return job->state.penalised ? policy->penalty_text : policy->limit_text[job->state.strictest];
}

void ratelimit_finish(struct http_exchange *exchange)
{
    const struct storage_job *job = &exchange->job;
    const struct limit_job *asked = &job->u.limit;
    const struct limit *limit = limit_job_strictest(asked);
    if (job->err != STORAGE_OK) {
        problem_from_storage(&exchange->response, job->err, job->detail);
    } else if (asked->state.allowed) {
        limit_reply_allowed(&exchange->response, name_of(asked), limit, &asked->state);
    } else {
        limit_reply_refused(&exchange->response, name_of(asked), limit, &asked->state,
            limited_by(exchange->app, asked));
    }
}

/* ---- GET /ratelimit/check ---- */

enum handler_result ratelimit_check_start(struct http_exchange *exchange)
{
    struct slice key, name;
    const struct params *params = query_begin(exchange, PARAM_SPECS(key_and_policy));
    if (params == NULL || !read_key(exchange, params, &key)) {
        return HANDLER_REPLY;
    }
    if (!params_get(params, "policy", &name)) {
        (void)query_refuse(exchange, "policy", "policy is required");
        return HANDLER_REPLY;
    }
    const struct limit_policy *policy = read_policy(exchange, name);
    return policy != NULL ? ask_policy(exchange, key, policy, 1) : HANDLER_REPLY;
}

void ratelimit_check_finish(struct http_exchange *exchange)
{
    const struct storage_job *job = &exchange->job;
    const struct limit_job *limit = &job->u.limit;
    if (job->err != STORAGE_OK || !limit->state.allowed) {
        ratelimit_finish(exchange);
        return;
    }
    reply_empty(&exchange->response, 204);
    limit_reply_headers(
        &exchange->response, limit->policy, limit_job_strictest(limit), &limit->state);
}

/* ---- DELETE /ratelimit ---- */

enum handler_result ratelimit_reset_start(struct http_exchange *exchange)
{
    const struct app *app = exchange->app;
    struct slice key, name;
    const struct params *params = query_begin(exchange, PARAM_SPECS(key_and_policy));
    if (params == NULL || !read_key(exchange, params, &key)) {
        return HANDLER_REPLY;
    }
    struct limit_reset_job reset = {
        .key = key, .policies = app->policy_names, .n_policies = app->n_policies + 1};
    if (params_get(params, "policy", &name)) {
        const struct limit_policy *policy = read_policy(exchange, name);
        if (policy == NULL) {
            return HANDLER_REPLY;
        }
        reset.policies = &policy->name;
        reset.n_policies = 1;
    }
    exchange->job.op = STORAGE_LIMIT_RESET;
    exchange->job.u.limit_reset = reset;
    return HANDLER_WAIT;
}

void ratelimit_reset_finish(struct http_exchange *exchange)
{
    if (exchange->job.err != STORAGE_OK) {
        problem_from_storage(&exchange->response, exchange->job.err, exchange->job.detail);
        return;
    }
    reply_empty(&exchange->response, 204);
}
