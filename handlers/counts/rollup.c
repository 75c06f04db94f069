/* rollup.c - GET and POST /rollup: how far minutes are rolled up to hours, days and months.
 *
 * GET tells which process does that work (the leader) and how far it is.  POST does the same after
 * one more pass.  A watermark belongs to a level (hour, day, month): every bucket of the level that
 * ends at or before the watermark is complete in all partitions. */
#include "handlers/routes.h"

#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/timestamp.h"

static enum handler_result start(struct http_exchange *exchange, enum storage_op op)
{
    if (!query_empty(exchange)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = op;
    return HANDLER_WAIT;
}

enum handler_result rollup_get_start(struct http_exchange *exchange)
{
    return start(exchange, STORAGE_ROLLUP_STATUS);
}

enum handler_result rollup_post_start(struct http_exchange *exchange)
{
    return start(exchange, STORAGE_ROLLUP_RUN);
}

static json_t *levels_json(const int64_t value[LEVELS], bool times)
{
    json_t *levels = json_object();
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        char text[TIMESTAMP_TEXT];
        timestamp_print(value[level], text);
        json_object_set_new(levels, level_name((enum level)level),
            times ? json_string(text) : json_integer((json_int_t)value[level]));
    }
    return levels;
}

void rollup_finish(struct http_exchange *exchange)
{
    const struct storage_job *job = &exchange->job;
    const struct rollup_job *r = &job->u.rollup;
    if (job->err == STORAGE_UNKNOWN) {
        problem_reply(&exchange->response, PROBLEM_UNKNOWN_OUTCOME,
            "the pass did not end in time; it goes on, or begins when a process leads, and "
            "GET /rollup tells who leads and how far it is");
        return;
    }
    if (job->err != STORAGE_OK) {
        problem_from_storage(&exchange->response, job->err, job->detail);
        return;
    }
    json_t *holder = r->holder[0] == '\0' ? json_null() : json_string(r->holder);
    reply_json(&exchange->response, 200,
        json_pack("{s:b,s:o,s:I,s:o,s:o}", "leader", r->leader ? 1 : 0, "holder", holder,
            "fencing_token", (json_int_t)r->fencing_token, "watermarks",
            levels_json(r->watermark_s, true), "lag_s", levels_json(r->lag_s, false)));
}
