/* take_back.c - DELETE /users/{user}/activity: a user did not do an action on a day after all. */
#include "handlers/routes.h"

#include <stdlib.h>

#include "handlers/question/date_params.h"
#include "handlers/question/question.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"

static const struct param_spec specs[] = {{"site", false}, {"action", false}, {"date", false}};

static void release(struct http_exchange *exchange)
{
    date_params_release(exchange->state);
    free(exchange->state);
}

enum handler_result take_back_start(struct http_exchange *exchange)
{
    int64_t day = 0;
    struct date_params *asked = question_begin(exchange, sizeof(*asked), release);
    if (asked == NULL || !date_params_read(exchange, PARAM_SPECS(specs), asked) ||
        /* Action and date must be given: no default may take back what was not meant. */
        !query_has(exchange, &asked->params, "action") ||
        !query_has(exchange, &asked->params, "date") ||
        !query_segment(exchange, "user", event_check_user) ||
        !date_params_date(exchange, asked, "date", &day)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_TAKE_BACK;
    exchange->job.u.take_back = (struct take_back_job){.site = asked->site,
        .user = exchange->request.segment,
        .action = asked->actions[0],
        .day = day};
    return HANDLER_WAIT;
}

void take_back_finish(struct http_exchange *exchange)
{
    const struct take_back_job *job = &exchange->job.u.take_back;
    enum storage_err err = exchange->job.err;
    if (err == STORAGE_OK) {
        reply_empty(&exchange->response, 204);
    } else if (job->sent) {
        problem_from_storage(&exchange->response, STORAGE_UNKNOWN, exchange->job.detail);
    } else {
        date_params_failed(exchange, "date", job->day, job->oldest_day);
    }
}
