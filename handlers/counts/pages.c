/* pages.c - GET /pages: the top pages of a window, by page views, by visitors, or by the visits
 * that began with the page. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/question/question.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"

static const struct param_spec specs[] = {
    WINDOW_PARAMS, {"by", false}, {"limit", false}, {"prefix", false}};

static void release(struct http_exchange *exchange)
{
    window_params_release(exchange->state);
    free(exchange->state);
}

static bool read_order(
    struct http_exchange *exchange, const struct params *params, struct pages_job *job)
{
    struct slice by = SLICE("pv");
    (void)params_get(params, "by", &by);
    job->by_uv = slice_equal(by, SLICE("uv"));
    job->entries = job->without_uv = slice_equal(by, SLICE("visits"));
    return job->by_uv || job->entries || slice_equal(by, SLICE("pv")) ||
           query_refuse(exchange, "by", "must be pv, uv or visits");
}

enum handler_result pages_start(struct http_exchange *exchange)
{
    struct window_params *asked = question_begin(exchange, sizeof(*asked), release);
    struct pages_job job = {0};
    if (asked == NULL || !window_params_read_with(exchange, PARAM_SPECS(specs), asked) ||
        !read_order(exchange, &asked->params, &job) ||
        !question_read_limit(exchange, &asked->params, &job.limit) ||
        /* A prefix must pass the rules for a page. */
        !query_text(exchange, &asked->params, "prefix", event_check_page, &job.prefix)) {
        return HANDLER_REPLY;
    }
    job.asked = window_params_question(asked);
    job.pages = asked->pages;
    job.n_pages = asked->n_pages;
    job.set.name = asked->pageset;
    exchange->job.op = STORAGE_PAGES;
    exchange->job.u.pages = job;
    return HANDLER_WAIT;
}

static json_t *row_json(const struct pages_job *job, const struct page_row *row)
{
    json_t *page = text_json(row->page);
    json_t *json = job->entries
                       ? json_pack("{s:o,s:I}", "page", page, "visits", (json_int_t)row->pv)
                       : json_pack("{s:o,s:I,s:I}", "page", page, "pv", (json_int_t)row->pv, "uv",
                             (json_int_t)row->uv);
    if (row->at_most > row->pv) {
        json_object_set_new(json, "at_most", json_integer((json_int_t)row->at_most));
    }
    return json;
}

/* The row of what a cap put together: it is no page, and its visitors are not counted. */
static json_t *other_json(const struct pages_job *job)
{
    json_t *json = json_pack("{s:s,s:I,s:b}", "page", "(other)", job->entries ? "visits" : "pv",
        (json_int_t)job->other_pv, "capped", 1);
    if (!job->entries) {
        json_object_set_new(json, "uv", json_null());
    }
    return json;
}

static json_t *rows_json(const struct pages_job *job)
{
    json_t *rows = json_array();
    for (size_t i = 0; rows != NULL && i < job->n_rows; i++) {
        json_array_append_new(rows, row_json(job, &job->rows[i]));
    }
    if (rows != NULL && job->other_pv > 0 && job->n_pages == 0 && job->set.name.n == 0) {
        json_array_append_new(rows, other_json(job)); /* always the last row, whatever it has */
    }
    return rows;
}

void pages_finish(struct http_exchange *exchange)
{
    const struct pages_job *job = &exchange->job.u.pages;
    const struct window_question *asked = &job->asked;
    if (exchange->job.err != STORAGE_OK) {
        window_failed(exchange, exchange->state, asked->answered);
        return;
    }
    json_t *root = window_head_json(exchange->state, asked->answered);
    json_object_set_new(root, "by",
        json_string(job->by_uv     ? "uv"
                    : job->entries ? "visits"
                                   : "pv"));
    json_object_set_new(root, "pages", rows_json(job));
    json_object_set_new(root, "total_pages", json_integer((json_int_t)job->total));
    if (!job->entries) {
        json_object_set_new(root, "error", json_pack("{s:f}", "relative", WINDOW_STANDARD_ERROR));
    }
    window_tail_json(exchange, asked, true, root);
    flag_json(root, "capped", job->other_pv > 0);
    flag_json(root, "clamped", job->clamped);
    static const struct csv_shape shape = {"pages", {"site", "page", "pv", "uv"}};
    static const struct csv_shape entries = {"pages", {"site", "page", "visits"}};
    csv_reply(exchange, 200, root, job->entries ? &entries : &shape);
}
