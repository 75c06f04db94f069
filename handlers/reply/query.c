#include "handlers/reply/query.h"

#include <stdlib.h>

#include "handlers/reply/problem.h"
#include "handlers/reply/state.h"
#include "storage/base/buffer.h"

bool query_refuse(struct http_exchange *exchange, const char *parameter, const char *detail)
{
    problem_reply_parameter(&exchange->response, PROBLEM_MALFORMED, parameter, "%s", detail);
    return false;
}

/* Refuse a parameter that is not in @specs, and tell which parameters are. */
static bool refuse_unknown(struct http_exchange *exchange, const char *parameter,
    const struct param_spec *specs, size_t n_specs)
{
    struct buffer known;
    buffer_init(&known);
    for (size_t i = 0; i < n_specs; i++) {
        buffer_text(&known, i > 0 ? ", " : "");
        buffer_text(&known, specs[i].name);
    }
    buffer_append(&known, "", 1); /* the NUL */
    if (known.failed) {
        (void)problem_no_memory(&exchange->response);
    } else {
        problem_reply_parameter(&exchange->response, PROBLEM_MALFORMED, parameter,
            "unknown parameter; this path takes %s", n_specs > 0 ? known.p : "none");
    }
    buffer_release(&known);
    return false;
}

bool query_read(struct http_exchange *exchange, const struct param_spec *specs, size_t n_specs,
    struct params *ret)
{
    switch (params_parse(exchange->request.query, specs, n_specs, ret)) {
    case PARAMS_OK:
        return true;
    case PARAMS_REFUSED:
        return ret->error.unknown ? refuse_unknown(exchange, ret->error.parameter, specs, n_specs)
                                  : query_refuse(exchange, ret->error.parameter, ret->error.detail);
    case PARAMS_NOMEM:
        break;
    }
    return problem_no_memory(&exchange->response);
}

static void release_params(struct http_exchange *exchange)
{
    params_release(exchange->state);
    free(exchange->state);
}

struct params *query_begin(
    struct http_exchange *exchange, const struct param_spec *specs, size_t n_specs)
{
    struct params *params = state_begin(exchange, sizeof(*params), release_params);
    return params != NULL && query_read(exchange, specs, n_specs, params) ? params : NULL;
}

bool query_empty(struct http_exchange *exchange)
{
    struct params params;
    bool empty = query_read(exchange, NULL, 0, &params);
    params_release(&params);
    return empty;
}

bool query_text(struct http_exchange *exchange, const struct params *params, const char *name,
    const char *(*check)(struct slice value), struct slice *ret)
{
    const char *fault = params_get(params, name, ret) ? check(*ret) : NULL;
    return fault == NULL || query_refuse(exchange, name, fault);
}

bool query_segment(
    struct http_exchange *exchange, const char *name, const char *(*check)(struct slice value))
{
    const char *fault = check(exchange->request.segment);
    return fault == NULL || query_refuse(exchange, name, fault);
}

bool query_number(struct http_exchange *exchange, const struct params *params, const char *name,
    size_t max, size_t *ret)
{
    bool ok = params_number(params, name, max, ret);
    if (!ok) {
        problem_reply_parameter(&exchange->response, PROBLEM_MALFORMED, name,
            "must be a whole number from 1 to %zu", max);
    }
    return ok;
}

bool query_flag(
    struct http_exchange *exchange, const struct params *params, const char *name, bool *ret)
{
    return params_flag(params, name, ret) || query_refuse(exchange, name, "must be 1 or 0");
}

bool query_has(struct http_exchange *exchange, const struct params *params, const char *name)
{
    return params_has(params, name) || query_refuse(exchange, name, "is required");
}
