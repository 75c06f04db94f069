/* page_sets.c - PUT, GET and DELETE /pagesets/{name}: pages under one name, so that questions can
 * be asked about all of them by that name. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/json_body.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/reply/state.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

static const struct param_spec specs[] = {{"site", false}};

struct page_sets_state {
    struct params params;
    json_t *body;        /* owned: the texts of `pages` lie in it */
    struct slice *pages; /* owned; n_pages of them, as the body has them */
    size_t n_pages;
};

static void release(struct http_exchange *exchange)
{
    struct page_sets_state *state = exchange->state;
    params_release(&state->params);
    json_decref(state->body);
    free(state->pages);
    free(state);
}

/* Read the set's name and its site, and fill the job.  NULL: the response says what is wrong. */
static struct page_sets_state *begin(struct http_exchange *exchange, enum storage_op op)
{
    struct page_sets_state *state = state_begin(exchange, sizeof(*state), release);
    struct slice site;
    if (state == NULL || !query_read(exchange, specs, 1, &state->params) ||
        !access_read_site(exchange, &state->params, &site) ||
        !query_segment(exchange, "name", name_check)) {
        return NULL;
    }
    exchange->job.op = op;
    exchange->job.u.page_set =
        (struct page_set_job){.site = site, .name = exchange->request.segment};
    return state;
}

/* ---- the body of a PUT ---- */

static bool refuse_member(struct http_exchange *exchange, const char *pointer, const char *detail)
{
    problem_reply_errors(&exchange->response, PROBLEM_UNACCEPTABLE,
        json_pack("[{s:s,s:s}]", "pointer", pointer, "detail", detail), "%s%s%s",
        pointer[0] == '/' ? pointer + 1 : "", pointer[0] == '/' ? " " : "", detail);
    return false;
}

static bool read_page(
    struct http_exchange *exchange, struct page_sets_state *state, const json_t *item, size_t i)
{
    char pointer[32];
    struct slice page = json_text_of(item);
    const char *fault =
        json_is_string(item) ? event_check_page(page) : "must be a string of 1 to 2048 bytes";
    if (fault != NULL) {
        (void)snprintf(pointer, sizeof(pointer), "/pages/%zu", i);
        return refuse_member(exchange, pointer, fault);
    }
    state->pages[state->n_pages++] = page;
    return true;
}

static bool read_pages(struct http_exchange *exchange, struct page_sets_state *state)
{
    const json_t *list = json_object_get(state->body, "pages");
    size_t n = json_array_size(list);
    if (!json_is_object(state->body)) {
        return refuse_member(exchange, "", "the body must be an object with the member pages");
    }
    if (json_object_size(state->body) > (list != NULL)) {
        return refuse_member(exchange, "", "the body must have no other member than pages");
    }
    if (!json_is_array(list) || n == 0 || n > PAGE_SET_MAX) {
        return refuse_member(exchange, "/pages", "must be an array of 1 to 1000 pages");
    }
    state->pages = malloc(n * sizeof(*state->pages));
    if (state->pages == NULL) {
        return problem_no_memory(&exchange->response);
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_page(exchange, state, json_array_get(list, i), i)) {
            return false;
        }
    }
    return true;
}

static bool read_body(struct http_exchange *exchange, struct page_sets_state *state)
{
    if (!json_body_type(exchange, false)) {
        return false;
    }
    state->body = json_body_read(exchange, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES);
    return state->body != NULL && read_pages(exchange, state);
}

enum handler_result page_set_put_start(struct http_exchange *exchange)
{
    struct page_sets_state *state = begin(exchange, STORAGE_PAGE_SET_PUT);
    if (state == NULL || !read_body(exchange, state)) {
        return HANDLER_REPLY;
    }
    exchange->job.u.page_set.pages = state->pages;
    exchange->job.u.page_set.n_pages = state->n_pages;
    return HANDLER_WAIT;
}

/* ---- answers ---- */

/* Answer for the job, which failed.  If a change was sent to Redis and not answered it may have
 * been made, whatever the error of a later try is. */
static void failed(struct http_exchange *exchange)
{
    const struct page_set_job *set = &exchange->job.u.page_set;
    enum storage_err err = exchange->job.err;
    if (err == STORAGE_NO_SET) {
        problem_reply(&exchange->response, PROBLEM_NOT_FOUND, "site %.*s has no page set %.*s",
            (int)set->site.n, set->site.p, (int)set->name.n, set->name.p);
        return;
    }
    problem_from_storage(
        &exchange->response, set->sent ? STORAGE_UNKNOWN : err, exchange->job.detail);
}

static void reply_set(struct http_exchange *exchange, unsigned status)
{
    const struct page_set_job *set = &exchange->job.u.page_set;
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(set->site));
    json_object_set_new(root, "name", text_json(set->name));
    json_object_set_new(root, "pages", window_pages_json(set->pages, set->n_pages));
    reply_json(&exchange->response, status, root);
}

void page_set_put_finish(struct http_exchange *exchange)
{
    if (exchange->job.err != STORAGE_OK) {
        failed(exchange);
    } else {
        reply_set(exchange, exchange->job.u.page_set.created ? 201 : 200);
    }
}

enum handler_result page_set_get_start(struct http_exchange *exchange)
{
    return begin(exchange, STORAGE_PAGE_SET_GET) != NULL ? HANDLER_WAIT : HANDLER_REPLY;
}

void page_set_get_finish(struct http_exchange *exchange)
{
    if (exchange->job.err != STORAGE_OK) {
        failed(exchange);
    } else {
        reply_set(exchange, 200);
    }
}

enum handler_result page_set_delete_start(struct http_exchange *exchange)
{
    return begin(exchange, STORAGE_PAGE_SET_DELETE) != NULL ? HANDLER_WAIT : HANDLER_REPLY;
}

void page_set_delete_finish(struct http_exchange *exchange)
{
    if (exchange->job.err != STORAGE_OK) {
        failed(exchange);
    } else {
        reply_empty(&exchange->response, 204);
    }
}
