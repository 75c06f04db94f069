/* breakdown.c - GET /breakdown: named events, by how often they happened or by visitors. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/question/question.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/query.h"
#include "storage/job/event_name.h"

static const struct param_spec specs[] = {{"site", false}, {"by", false}, {"metric", false},
    {"limit", false}, {"from", false}, {"to", false}, {"tz", false}, {"explain", false},
    {"round", false}};

static void release(struct http_exchange *exchange)
{
    window_params_release(exchange->state);
    storage_job_release(&exchange->job);
    free(exchange->state);
}

static bool read_by(struct http_exchange *exchange, const struct params *params)
{
    struct slice by;
    return (params_get(params, "by", &by) && slice_equal(by, SLICE("event"))) ||
           query_refuse(exchange, "by", "must be event");
}

enum handler_result breakdown_start(struct http_exchange *exchange)
{
    static const char mark[] = {EVENT_NAME_MARK};
    struct window_params *asked = question_begin(exchange, sizeof(*asked), release);
    struct pages_job job = {.prefix = {mark, sizeof(mark)}};
    if (asked == NULL ||
        !window_params_read_with(exchange, specs, sizeof(specs) / sizeof(specs[0]), asked) ||
        !read_by(exchange, &asked->params) ||
        !question_read_pv_or_uv(exchange, &asked->params, "metric", &job.by_uv) ||
        !question_read_limit(exchange, &asked->params, &job.limit)) {
        return HANDLER_REPLY;
    }
    job.asked = window_params_question(asked);
    exchange->job.op = STORAGE_PAGES;
    exchange->job.u.pages = job;
    return HANDLER_WAIT;
}

/* A figure is exact but for the visitors' error: no cap has put names together. */
static json_t *rows_json(const struct pages_job *job)
{
    json_t *rows = json_array();
    for (size_t i = 0; rows != NULL && i < job->n_rows; i++) {
        const struct page_row *row = &job->rows[i];
        struct slice name = event_name_bare(row->page);
        json_array_append_new(
            rows, json_pack("{s:o,s:I,s:I,s:o,s:b}", "value", json_stringn(name.p, name.n), "pv",
                      (json_int_t)row->pv, "uv", (json_int_t)row->uv, "error",
                      window_error_json(row->uv), "at_most", 0));
    }
    return rows;
}

void breakdown_finish(struct http_exchange *exchange)
{
    const struct pages_job *job = &exchange->job.u.pages;
    const struct window_question *asked = &job->asked;
    if (exchange->job.err != STORAGE_OK) {
        window_failed(exchange, exchange->state, asked->answered);
        return;
    }
    json_t *root = window_head_json(exchange->state, asked->answered);
    json_object_set_new(root, "by", json_string("event"));
    json_object_set_new(root, "metric", json_string(job->by_uv ? "uv" : "pv"));
    json_object_set_new(root, "rows", rows_json(job));
    json_object_set_new(root, "other", json_integer(0));
    json_object_set_new(root, "total", json_integer((json_int_t)job->total_pv));
    window_tail_json(exchange, asked, root);
    if (job->clamped) {
        json_object_set_new(root, "clamped", json_true());
    }
    static const struct csv_shape shape = {"rows", {"site", "value", "pv", "uv"}};
    csv_reply(exchange, 200, root, &shape);
}
