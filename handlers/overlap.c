#include "handlers/overlap.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "handlers/problem.h"
#include "handlers/reply.h"
#include "handlers/window_reply.h"

/* No page set: two sets would be needed. */
static const struct param_spec specs[] = {{"site", false}, {"page", true}, {"from", false},
    {"to", false}, {"tz", false}, {"explain", false}, {"round", false}};

static void release(struct http_exchange *exchange)
{
    window_params_release(exchange->state);
    storage_job_release(&exchange->job);
    free(exchange->state);
}

enum handler_result overlap_start(struct http_exchange *exchange)
{
    struct window_params *asked = calloc(1, sizeof(*asked));
    if (asked == NULL || exchange->request.now_ms == 0) {
        problem_from_storage(
            &exchange->response, asked == NULL ? STORAGE_NOMEM : STORAGE_DOWN, NULL);
        free(asked);
        return HANDLER_REPLY;
    }
    exchange->state = asked;
    exchange->release = release;
    if (!window_params_read_with(exchange, specs, sizeof(specs) / sizeof(specs[0]), asked)) {
        return HANDLER_REPLY;
    }
    if (asked->n_pages != 2) {
        problem_reply_parameter(
            &exchange->response, PROBLEM_MALFORMED, "page", "must be given exactly twice");
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_OVERLAP;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    exchange->job.u.overlap = (struct overlap_job){
        .asked = window_params_question(asked), .pages = {asked->pages[0], asked->pages[1]}};
    return HANDLER_WAIT;
}

/* Forged sketches can estimate to 2^63 (see hll.h). */
static json_t *whole(double value)
{
    return json_integer(value < 4e18 ? (json_int_t)llround(value) : (json_int_t)4e18);
}

/* Where the truth lies in 95 % of cases. */
static void bounds(const struct hll_figure *figure, double *ret_low, double *ret_high)
{
    double margin = HLL_JOINT_95 * figure->error;
    *ret_low = figure->value > margin ? figure->value - margin : 0;
    *ret_high = figure->value + margin;
}

/* The standard error as a part of the figure; null where that is nothing, and its error not. */
static json_t *relative(const struct hll_figure *figure)
{
    if (figure->value <= 0 && figure->error > 0) {
        return json_null();
    }
    double part = figure->value > 0 ? figure->error / figure->value : 0;
    return json_real(round(part * 1e6) / 1e6);
}

/* A figure of which the interval reaches down to nothing may as well be nothing. */
static void add_significance(json_t *object, const struct hll_figure *figure)
{
    if (HLL_JOINT_95 * figure->error > figure->value) {
        json_object_set_new(object, "significant", json_false());
    }
}

static json_t *count_json(const struct hll_figure *figure)
{
    double low, high;
    bounds(figure, &low, &high);
    json_t *root = json_pack("{s:o,s:{s:o,s:o,s:o}}", "uv", whole(figure->value), "error",
        "relative", relative(figure), "low", whole(floor(low)), "high", whole(ceil(high)));
    add_significance(root, figure);
    return root;
}

static json_t *page_json(struct slice page, const struct hll_figure *figure)
{
    json_t *root = json_pack("{s:o}", "page", json_stringn(page.p, page.n));
    json_object_update_new(root, count_json(figure));
    return root;
}

static json_t *share_json(const struct hll_figure *figure)
{
    double low, high;
    bounds(figure, &low, &high);
    json_t *root = json_pack("{s:f,s:{s:o,s:f,s:f}}", "value", figure->value, "error", "relative",
        relative(figure), "low", low, "high", high < 1 ? high : 1.0);
    add_significance(root, figure);
    return root;
}

void overlap_finish(struct http_exchange *exchange)
{
    const struct overlap_job *job = &exchange->job.u.overlap;
    const struct window_question *asked = &job->asked;
    if (exchange->job.err != STORAGE_OK) {
        window_failed(exchange, exchange->state, asked->answered);
        return;
    }
    json_t *root = window_head_json(exchange->state, asked->answered);
    json_object_set_new(root, "a", page_json(job->pages[0], &job->joint.a));
    json_object_set_new(root, "b", page_json(job->pages[1], &job->joint.b));
    json_object_set_new(root, "union", count_json(&job->joint.either));
    json_object_set_new(root, "intersection", count_json(&job->joint.both));
    json_object_set_new(root, "jaccard", share_json(&job->joint.jaccard));
    json_object_set_new(root, "cover",
        window_cover_json(asked->per_level, asked->explain, asked->keys, asked->n_keys));
    if (window_spans_rotation(exchange->app, asked->answered)) {
        json_object_set_new(root, "spans_rotation", json_true());
    }
    reply_json(&exchange->response, 200, root);
}
