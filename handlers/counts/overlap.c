/* overlap.c - GET /overlap: how many visitors two pages, or two sets of pages, have in common; or
 * how many visitors of a page, or of the site, came in both of two windows, and how many are new.
 */
#include "handlers/routes.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/dimension/derive.h"
#include "handlers/question/question.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "storage/job/counted_name.h"

static const struct param_spec specs[] = {{"site", false}, {"page", true}, {"pageset", true},
    WINDOW_EVENT_PARAM, WINDOW_SECTION_PARAM, WINDOW_VALUE_PARAMS, {"from", false}, {"to", false},
    {"from2", false}, {"to2", false}, {"tz", false}, {"explain", false}, {"round", false}};

static void release(struct http_exchange *exchange)
{
    window_params_release(exchange->state);
    free(exchange->state);
}

/* Read the two sides.  A side is a page, a set, a named event, a section or a value of a dimension;
 * the query must have two of these in all, and their order is kept.  With two windows the query may
 * have only one, which is on both sides then, or none: then both sides are the site. */
static bool read_sides(struct http_exchange *exchange, const struct window_params *asked,
    bool two_windows, struct overlap_side sides[2])
{
    const struct params *params = &asked->params;
    size_t n_sets = params_count(params, "pageset");
    size_t n_sides = asked->n_pages + asked->n_names + n_sets;
    if (two_windows && n_sides > 2) {
        return query_refuse(exchange, n_sets == 0 ? "page" : "pageset",
            "pages, page sets and names must be given at most twice, taken together");
    }
    if (!two_windows && n_sides != 2) {
        return n_sets + asked->n_names == 0
                   ? query_refuse(exchange, "page", "must be given exactly twice")
                   : query_refuse(exchange, n_sets > 0 ? "pageset" : asked->name_param,
                         "pages, page sets and names must be given exactly twice, taken together");
    }
    for (size_t i = 0, n = 0, names = 0; i < params->n; i++) {
        const struct param *param = &params->pairs[i];
        if (strcmp(param->spec->name, "page") == 0) {
            sides[n++].page = param->value;
        } else if (window_params_is_name(param)) {
            sides[n++].page = asked->names[names++];
        } else if (strcmp(param->spec->name, "pageset") == 0) {
            if (!name_valid(param->value)) {
                return query_refuse(exchange, "pageset", NAME_DETAIL);
            }
            sides[n++].set.name = param->value;
        }
    }
    if (n_sides == 1) {
        sides[1] = sides[0];
    }
    return true;
}

/* Are the visitors of both sides counted?  False: the response says for which side they are not. */
static bool check_counted(struct http_exchange *exchange, const struct window_params *asked)
{
    const struct dimension_plan *plan = derive_plan(exchange->app, asked->site);
    for (size_t i = 0; i < asked->params.n; i++) {
        const char *name = asked->params.pairs[i].spec->name;
        enum dimension dimension = dimension_find(slice_of(name));
        if (dimension != DIMENSION_N && (plan->with_visitors >> dimension & 1) == 0) {
            problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, name,
                "its visitors are not counted: see the option visitors-by");
            return false;
        }
    }
    return true;
}

enum handler_result overlap_start(struct http_exchange *exchange)
{
    struct window_params *asked = question_begin(exchange, sizeof(*asked), release);
    struct overlap_job job = {0};
    if (asked == NULL || !window_params_read_with(exchange, PARAM_SPECS(specs), asked) ||
        !window_params_read_second(exchange, asked, &job.asked_second, &job.two_windows) ||
        !read_sides(exchange, asked, job.two_windows, job.sides) ||
        !check_counted(exchange, asked)) {
        return HANDLER_REPLY;
    }
    job.asked = window_params_question(asked);
    exchange->job.op = STORAGE_OVERLAP;
    exchange->job.u.overlap = job;
    return HANDLER_WAIT;
}

/* @value as an integer of JSON.  It is bounded, because a forged sketch can estimate 2^63 (see
 * storage/sketch/hll.h). */
static json_t *whole(double value)
{
    return json_integer(value < 4e18 ? (json_int_t)llround(value) : (json_int_t)4e18);
}

/* The interval in which the truth lies in 95 % of cases. */
static void bounds(const struct hll_figure *figure, double *ret_low, double *ret_high)
{
    double margin = HLL_JOINT_95 * figure->error;
    *ret_low = figure->value > margin ? figure->value - margin : 0;
    *ret_high = figure->value + margin;
}

/* The standard error divided by the figure; null where the figure is 0 and its error is not. */
static json_t *relative(const struct hll_figure *figure)
{
    if (figure->value <= 0 && figure->error > 0) {
        return json_null();
    }
    double part = figure->value > 0 ? figure->error / figure->value : 0;
    return json_real(round(part * 1e6) / 1e6);
}

/* Say in @object if the figure is not significant: its interval reaches down to 0. */
static void add_significance(json_t *object, const struct hll_figure *figure)
{
    if (HLL_JOINT_95 * figure->error > figure->value) {
        json_object_set_new(object, "significant", json_false());
    }
}

/* A figure with its error.  @most is its upper bound where a cap put names together; else 0. */
static json_t *count_json(const struct hll_figure *figure, double most)
{
    double low, high;
    bounds(figure, &low, &high);
    json_t *root = json_pack("{s:o,s:{s:o,s:o,s:o}}", "uv", whole(figure->value), "error",
        "relative", relative(figure), "low", whole(floor(low)), "high", whole(ceil(high)));
    if (most > 0) {
        json_object_set_new(root, "at_most", whole(most));
    }
    add_significance(root, figure);
    return root;
}

/* The name @page of a side, without its mark.  *ret_what is the parameter for such names. */
static struct slice side_name(struct slice page, const char **ret_what)
{
    char mark = counted_name_mark(page);
    *ret_what = mark == NAME_MARK_EVENT     ? "event"
                : mark == NAME_MARK_SECTION ? "section"
                : mark == NAME_MARK_VALUE   ? dimension_name(dimension_of_letter(page.p[1]))
                                            : "page";
    size_t n = mark == '\0' ? 0 : mark == NAME_MARK_VALUE ? 2 : 1;
    return (struct slice){page.p + n, page.n - n};
}

static json_t *side_json(
    const struct overlap_side *side, const struct hll_figure *figure, double most)
{
    const char *what = "pageset";
    struct slice name = side->set.name;
    if (name.n == 0) {
        name = side_name(side->page, &what);
    }
    json_t *root = json_pack("{s:o}", what, name.n > 0 ? text_json(name) : json_null());
    json_object_update_new(root, count_json(figure, most));
    return root;
}

static json_t *share_json(const struct hll_figure *figure, double most)
{
    double low, high;
    bounds(figure, &low, &high);
    json_t *root = json_pack("{s:f,s:{s:o,s:f,s:f}}", "value", figure->value, "error", "relative",
        relative(figure), "low", low, "high", high < 1 ? high : 1.0);
    if (most > 0) {
        json_object_set_new(root, "at_most", json_real(most));
    }
    add_significance(root, figure);
    return root;
}

/* Add the members that only an answer about two windows has. */
static void add_second_window(
    const struct http_exchange *exchange, const struct overlap_job *job, json_t *root)
{
    const struct window_question *b = &job->asked_second;
    struct window all = job->asked.answered;
    all.from_s = b->answered.from_s < all.from_s ? b->answered.from_s : all.from_s;
    all.to_s = b->answered.to_s > all.to_s ? b->answered.to_s : all.to_s;
    json_object_set_new(root, "from2", window_time_json(b->answered.from_s));
    json_object_set_new(root, "to2", window_time_json(b->answered.to_s));
    json_object_set_new(root, "new", count_json(&job->joint.only_a, job->most.only_a));
    json_object_set_new(
        root, "cover2", window_cover_json(b->per_level, b->explain, b->keys, b->n_keys));
    flag_json(root, "spans_rotation", storage_spans_rotation(exchange->app->storage, all));
}

void overlap_finish(struct http_exchange *exchange)
{
    const struct overlap_job *job = &exchange->job.u.overlap;
    const struct window_question *asked = &job->asked;
    const struct hll_joint *joint = &job->joint;
    const struct overlap_most *most = &job->most;
    if (exchange->job.err != STORAGE_OK) {
        if (exchange->job.err == STORAGE_NO_SET) {
            window_no_set(exchange, asked->site, job->sides[job->unknown].set.name);
            return;
        }
        if (exchange->job.err == STORAGE_NOT_KEPT && job->two_windows && job->unknown == 1) {
            window_second_not_kept(exchange, job->asked_second.answered);
            return;
        }
        window_failed(exchange, exchange->state, asked->answered);
        return;
    }
    json_t *root = window_head_json(exchange->state, asked->answered);
    json_object_set_new(root, "a", side_json(&job->sides[0], &joint->a, most->sides[0]));
    json_object_set_new(root, "b", side_json(&job->sides[1], &joint->b, most->sides[1]));
    json_object_set_new(root, "union", count_json(&joint->either, most->either));
    json_object_set_new(root, "intersection", count_json(&joint->both, most->both));
    json_object_set_new(root, "jaccard", share_json(&joint->jaccard, most->jaccard));
    window_tail_json(exchange, asked, true, root);
    if (job->two_windows) {
        add_second_window(exchange, job, root);
    }
    reply_json(&exchange->response, 200, root);
}
