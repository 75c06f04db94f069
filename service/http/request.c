#include "service/http/request.h"

#include <stdlib.h>
#include <string.h>

#include "handlers/access/cors.h"
#include "handlers/ingest/dress.h"
#include "handlers/reply/json_memory.h"
#include "handlers/reply/problem.h"
#include "handlers/text/params.h"

bool request_begin(struct request *request, struct request_context *context, struct slice target)
{
    char *copy = request->target_small;
    request->target_heap = NULL;
    if (target.n > sizeof(request->target_small)) {
        copy = request->target_heap = malloc(target.n);
        if (copy == NULL) {
            return false;
        }
    }
    memcpy(copy, target.p, target.n);
    request->target = (struct slice){copy, target.n};
    request->context = context;
    request->message = (struct http_message){0};
    request->route = NULL;
    request->flags = 0;
    request->starved = false;
    request->refused = request->discard = request->preflight = false;
    request->tokens = NULL;
    request->uploaded = 0;
    memset(&request->exchange, 0, sizeof(request->exchange));
    request->exchange.app = atomic_load_explicit(&context->app, memory_order_acquire);
    body_init(&request->body, &context->budget, context->max_body, request->body_small,
        sizeof(request->body_small));
    return true;
}

static void count(_Atomic int64_t *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void request_refuse(struct request *request, enum problem problem, const char *detail)
{
    struct request_context *context = request->context;
    request->refused = true;
    count(problem == PROBLEM_TOO_LARGE ? &context->refused_large : &context->refused_head);
    problem_reply(&request->exchange.response, problem, "%s", detail);
}

/* Check @head, and take its message and method.  NULL, or what is wrong with the head. */
static const char *read_head(
    struct request *request, const struct http_head *head, enum router_method *ret_method)
{
    struct http_head copy = *head;
    const char *fault = http_strict_layout(head);
    copy.target = request->target; /* the library may have written to its copy */
    if (fault == NULL) {
        fault = http_strict_check(&copy, &request->message);
    }
    if (fault != NULL) {
        request->message.request_id = http_request_id(head);
        return fault;
    }
    *ret_method = router_method(head->method);
    request->preflight = cors_on(request->exchange.app) &&
                         slice_equal(head->method, SLICE("OPTIONS")) &&
                         request->message.fields[FIELD_ORIGIN].n > 0 &&
                         request->message.fields[FIELD_REQUEST_METHOD].n > 0;
    return NULL;
}

/* Decode the path's variable segment in place, in our own copy of the target.  False: the response
 * is filled. */
static bool decode_segment(struct request *request)
{
    struct slice *segment = &request->exchange.request.segment;
    if (segment->n == 0) {
        return true;
    }
    char *bytes = request->target_heap != NULL ? request->target_heap : request->target_small;
    const char *fault =
        params_decode_segment(*segment, bytes + (segment->p - request->target.p), segment);
    if (fault != NULL) {
        problem_reply(&request->exchange.response, PROBLEM_MALFORMED, "the path: %s", fault);
    }
    return fault == NULL;
}

/* How refusals look on @path, which no route serves with the request's method: as on the path with
 * another method, or without the slash at its end. */
static unsigned refusal_flags(const struct router *router, struct slice path)
{
    struct slice segment;
    unsigned methods;
    path.n -= path.n > 1 && path.p[path.n - 1] == '/';
    size_t index = router_find(router, ROUTER_OTHER, path, &segment, &methods);
    if (methods != 0) {
        unsigned ignored;
        enum router_method has = (enum router_method)__builtin_ctz(methods);
        index = router_find(router, has, path, &segment, &ignored);
    }
    return index < router->n ? router->routes[index].flags & ROUTE_BASIC : 0;
}

/* Find the route and fill in the request.  False: the response is filled. */
static bool find_route(struct request *request, enum router_method method)
{
    const struct router *router = &request->context->router;
    struct http_request *inner = &request->exchange.request;
    struct http_response *response = &request->exchange.response;
    unsigned methods;
    http_target_split(request->target, &inner->path, &inner->query);
    inner->fields = request->message.fields;
    inner->repeated = request->message.repeated;
    inner->forwarded = request->message.forwarded;
    inner->n_forwarded = request->message.n_forwarded;
    size_t index = router_find(router, method, inner->path, &inner->segment, &methods);
    if (index < router->n) {
        request->route = &router->routes[index];
        inner->method = request->route->method;
        inner->head = method == ROUTER_HEAD;
        return decode_segment(request);
    }
    request->flags = refusal_flags(router, inner->path);
    if (methods == 0) {
        problem_reply(
            response, PROBLEM_NOT_FOUND, "no such path; GET /openapi.yaml lists all of them");
        return false;
    }
    char allow[ROUTER_ALLOW_MAX];
    router_allow(methods, allow);
    if (request->preflight) {
        cors_preflight(allow, response);
        return false;
    }
    problem_reply(response, PROBLEM_METHOD, "this path takes %s", allow);
    (void)problem_add_header(response, "Allow", allow); /* the first header: there is room */
    return false;
}

static struct request *request_of(struct http_exchange *exchange)
{
    return (struct request *)((char *)exchange - offsetof(struct request, exchange));
}

/* For handlers: see http_exchange.show_token. */
static bool show_token(struct http_exchange *exchange, struct slice token)
{
    struct request *request = request_of(exchange);
    return tokens_show(request->context->tokens, request->route, token, exchange, &request->tokens);
}

/* For handlers: see http_exchange.drop_body. */
static void drop_body(struct http_exchange *exchange)
{
    exchange->request.body = (struct slice){NULL, 0};
    exchange->request.body_bytes = NULL;
    body_release(&request_of(exchange)->body);
}

/* May the client use the route?  False: the response is filled. */
static bool admit(struct request *request)
{
    struct tokens *tokens = request->context->tokens;
    request->exchange.show_token = show_token;
    return tokens == NULL ||
           tokens_admit(tokens, request->route, &request->exchange, &request->tokens);
}

static void refuse_body(struct request *request, enum body_err err)
{
    struct request_context *context = request->context;
    struct http_response *response = &request->exchange.response;
    switch (err) {
    case BODY_TOO_LARGE:
        count(&context->refused_large);
        problem_reply(
            response, PROBLEM_TOO_LARGE, "the body is larger than %zu bytes", context->max_body);
        return;
    case BODY_NO_BUDGET:
    case BODY_NO_MEMORY:
        count(&context->refused_memory);
        problem_reply(response, PROBLEM_UNAVAILABLE, "%s", body_err_text(err));
        return;
    case BODY_CODING:
        problem_reply(response, PROBLEM_MEDIA_TYPE, "%s", body_err_text(err));
        (void)problem_add_header(
            response, "Accept-Encoding", "gzip"); /* RFC 9110 section 15.5.16 */
        return;
    case BODY_BAD_GZIP:
    case BODY_TRUNCATED:
        problem_reply(response, PROBLEM_MALFORMED, "%s", body_err_text(err));
        return;
    case BODY_OK:
        break;
    }
    problem_reply(response, PROBLEM_INTERNAL, "the body was lost");
}

/* Get ready for the body that the head announces.  False: the response is filled. */
static bool expect_body(struct request *request)
{
    const struct http_message *message = &request->message;
    enum body_err err = BODY_OK;
    request->discard = (request->route->flags & ROUTE_BODY) == 0;
    if (message->content_length > request->context->max_body) {
        err = BODY_TOO_LARGE;
    }
    if (err == BODY_OK && !request->discard) {
        err = body_coding(&request->body, message->content_encoding);
    }
    if (err == BODY_OK && !request->discard) {
        err = body_claim(&request->body, message->content_length);
    }
    if (err != BODY_OK) {
        refuse_body(request, err);
    }
    return err == BODY_OK;
}

enum request_verdict request_head(struct request *request, const struct http_head *head)
{
    const struct http_message *message = &request->message;
    enum router_method method;
    const char *fault = read_head(request, head, &method);
    if (fault != NULL) {
        request_refuse(request, PROBLEM_MALFORMED, fault);
        return REQUEST_ANSWER_NOW;
    }
    request->refused = !find_route(request, method) || !admit(request) || !expect_body(request);
    if (!request->refused) {
        return REQUEST_GO_ON;
    }
    /* REQUEST_GO_ON would tell a client that waits for "100 Continue" to send its body. */
    bool long_way = message->chunked || message->expects_continue ||
                    message->content_length > REQUEST_SWALLOW_MAX ||
                    message->content_length > request->context->max_body;
    return long_way ? REQUEST_ANSWER_NOW : REQUEST_GO_ON;
}

enum request_verdict request_upload(
    struct request *request, const char *p, size_t n, uint64_t framing)
{
    size_t max = request->context->max_body;
    request->uploaded += n;
    if (request->message.chunked &&
        (request->uploaded > max || framing / REQUEST_FRAMING_FACTOR > max)) {
        if (!request->refused) {
            request->refused = true;
            refuse_body(request, request->body.err != BODY_OK ? request->body.err : BODY_TOO_LARGE);
        }
        return REQUEST_ANSWER_NOW;
    }
    /* Errors stick, and request_run() answers them. */
    if (!request->refused && !request->discard) {
        (void)body_append(&request->body, p, n);
    }
    return REQUEST_GO_ON;
}

enum handler_result request_run(struct request *request, int64_t now_ms)
{
    struct http_request *inner = &request->exchange.request;
    if (request->refused) {
        return HANDLER_REPLY;
    }
    enum body_err err = body_end(&request->body);
    if (err != BODY_OK) {
        request->refused = true;
        refuse_body(request, err);
        return HANDLER_REPLY;
    }
    inner->body = (struct slice){request->body.bytes, request->body.n};
    inner->body_bytes = request->body.bytes;
    request->exchange.drop_body = drop_body;
    inner->now_ms = now_ms;
    json_memory_begin(false);
    enum handler_result result = request->route->start(&request->exchange);
    request->starved = json_memory_failed();
    return result;
}

void request_finish(struct request *request)
{
    json_memory_begin(request->starved);
    request->route->finish(&request->exchange);
    request->starved = json_memory_failed();
}

void request_dress(struct request *request)
{
    unsigned flags = request->route != NULL ? request->route->flags : request->flags;
    bool known = request->context->tokens == NULL || request->exchange.access != NULL ||
                 (request->exchange.tokenless && request->exchange.response.status != 401);
    answer_dress(&request->exchange, flags, request->message.fields[FIELD_ORIGIN], known);
}

void request_end(struct request *request)
{
    struct http_exchange *exchange = &request->exchange;
    if (exchange->release != NULL) {
        exchange->release(exchange);
    }
    exchange->release = NULL;
    storage_job_release(&exchange->job);
    free(exchange->response.body);
    exchange->response.body = NULL;
    body_release(&request->body);
    tokens_let_go(request->tokens);
    request->tokens = NULL;
    free(request->target_heap);
    request->target_heap = NULL;
}
