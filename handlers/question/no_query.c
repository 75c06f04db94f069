#include "handlers/question/no_query.h"

#include "handlers/reply/problem.h"
#include "handlers/text/params.h"

bool no_query(struct http_exchange *exchange)
{
    struct params params;
    enum params_result result = params_parse(exchange->request.query, NULL, 0, &params);
    if (result == PARAMS_REFUSED) {
        problem_reply_parameter(&exchange->response, PROBLEM_MALFORMED, params.error.parameter,
            "%s", params.error.detail);
    } else if (result == PARAMS_NOMEM) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
    }
    params_release(&params);
    return result == PARAMS_OK;
}
