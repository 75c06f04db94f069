/* deletion.c - DELETE and GET /sites/{site}, DELETE /pages.
 *
 * A DELETE only begins a deletion, which goes on in steps; GET tells how far that of a site is. */
#include "handlers/routes.h"

#include <jansson.h>

#include "handlers/access/access.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

static const struct param_spec pages_specs[] = {
    {"site", false}, {"page", false}, {"prefix", false}};

static enum handler_result deletion_of_site(struct http_exchange *exchange, enum storage_op op)
{
    struct slice site = exchange->request.segment;
    if (!query_empty(exchange) || !query_segment(exchange, "site", event_check_site) ||
        !access_site(exchange, site)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = op;
    exchange->job.u.deletion = (struct deletion_job){.target.site = site};
    return HANDLER_WAIT;
}

enum handler_result get_site_start(struct http_exchange *exchange)
{
    return deletion_of_site(exchange, STORAGE_DELETION);
}

enum handler_result delete_site_start(struct http_exchange *exchange)
{
    return deletion_of_site(exchange, STORAGE_DELETE_SITE);
}

/* Read which pages are deleted: either page or prefix is given. */
static bool read_pages(
    struct http_exchange *exchange, const struct params *params, struct deletion_target *ret)
{
    bool page = params_get(params, "page", &ret->page);
    ret->is_prefix = params_get(params, "prefix", &ret->page);
    if (page == ret->is_prefix) {
        return query_refuse(exchange, page ? "prefix" : "page",
            page ? "page and prefix exclude each other" : "page or prefix must be given");
    }
    /* A prefix must pass the rules for a page. */
    const char *fault = event_check_page(ret->page);
    return fault == NULL || query_refuse(exchange, page ? "page" : "prefix", fault);
}

enum handler_result delete_pages_start(struct http_exchange *exchange)
{
    struct params *params = query_begin(exchange, PARAM_SPECS(pages_specs));
    struct deletion_target target = {.is_prefix = false};
    if (params == NULL || !access_read_site(exchange, params, &target.site) ||
        !read_pages(exchange, params, &target)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_DELETE_PAGES;
    exchange->job.u.deletion = (struct deletion_job){.target = target};
    return HANDLER_WAIT;
}

/* Has the job succeeded, and does the site exist?  False: the response says what is wrong. */
static bool deletion_ended(struct http_exchange *exchange)
{
    if (exchange->job.err != STORAGE_OK) {
        problem_from_storage(&exchange->response, exchange->job.err, exchange->job.detail);
        return false;
    }
    if (!exchange->job.u.deletion.exists) {
        problem_reply(&exchange->response, PROBLEM_NOT_FOUND, "there is no such site");
        return false;
    }
    return true;
}

static json_t *state_json(const struct deletion_job *job)
{
    return json_pack("{s:s,s:f}", "state", job->deleting ? "deleting" : "live", "done", job->done);
}

void get_site_finish(struct http_exchange *exchange)
{
    const struct deletion_job *job = &exchange->job.u.deletion;
    if (deletion_ended(exchange)) {
        json_t *root = json_object();
        json_object_set_new(root, "site", text_json(job->target.site));
        json_object_update_new(root, state_json(job));
        reply_json(&exchange->response, 200, root);
    }
}

void delete_site_finish(struct http_exchange *exchange)
{
    if (deletion_ended(exchange)) {
        reply_json(&exchange->response, 202, state_json(&exchange->job.u.deletion));
    }
}

/* What remains of pages that are deleted: figures that are made of many pages cannot be freed of
 * some. */
static const struct {
    const char *what, *why;
} pages_remaining[] = {
    {"site",
        "the site's own page views, visitors, addresses and visits keep what these pages were part "
        "of, and so do its sections, sources and other dimensions"},
    {"users", "users stay active on the days on which they saw these pages"},
    {"seen",
        "a Bloom filter keeps bits that others share: /seen still says that a user saw a page"},
    {"pagesets", "page sets still name these pages"},
};

void delete_pages_finish(struct http_exchange *exchange)
{
    if (!deletion_ended(exchange)) {
        return;
    }
    json_t *remains = json_array();
    for (size_t i = 0; i < sizeof(pages_remaining) / sizeof(pages_remaining[0]); i++) {
        json_array_append_new(remains,
            json_pack("{s:s,s:s}", "what", pages_remaining[i].what, "why", pages_remaining[i].why));
    }
    json_t *root = state_json(&exchange->job.u.deletion);
    json_object_set_new(root, "remains", remains);
    reply_json(&exchange->response, 202, root);
}
