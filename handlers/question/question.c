#include "handlers/question/question.h"

#include "handlers/reply/query.h"
#include "handlers/reply/state.h"
#include "storage/job/window_job.h"

void *question_begin(
    struct http_exchange *exchange, size_t size, void (*release)(struct http_exchange *exchange))
{
    return state_has_time(exchange) ? state_begin(exchange, size, release) : NULL;
}

bool question_read_limit(struct http_exchange *exchange, const struct params *params, size_t *ret)
{
    *ret = QUESTION_LIMIT;
    return query_number(exchange, params, "limit", PAGES_LIMIT_MAX, ret);
}
