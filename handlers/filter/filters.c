/* filters.c - /filters/{name}: named Bloom filters are made, described, deleted, filled and asked.
 */
#include "handlers/routes.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/filter/filter_body.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/reply/state.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

_Static_assert(NAME_MAX_BYTES <= FILTER_NAME_MAX, "the name of a filter is a name");

#define ERRORS_MAX 100 /* items that an answer lists as refused, at most */

static const struct param_spec specs[] = {{"site", false}};

struct filters_state {
    struct params params;
    struct filter_items items;
    unsigned char answers[FILTER_ITEMS_MAX];
};

static void release(struct http_exchange *exchange)
{
    struct filters_state *state = exchange->state;
    params_release(&state->params);
    filter_items_release(&state->items);
    free(state);
}

/* ---- what was asked ---- */

static bool read_body(
    struct http_exchange *exchange, struct filters_state *state, struct filter_job *job)
{
    switch (job->action) {
    case FILTER_CREATE:
        return filter_body_parameters(exchange, job);
    case FILTER_ADD:
    case FILTER_CHECK:
        if (!filter_body_items(exchange, &state->items)) {
            return false;
        }
        job->items = state->items.items;
        job->n_items = state->items.n;
        job->answers = state->answers;
        return true;
    case FILTER_INFO:
    case FILTER_DROP:
        break;
    }
    return true;
}

static enum handler_result start(struct http_exchange *exchange, enum filter_action action)
{
    struct filter_job job = {.action = action,
        .name = exchange->request.segment,
        .capacity = FILTER_CAPACITY_DEFAULT,
        .error = FILTER_ERROR_DEFAULT,
        .expansion = BLOOM_EXPANSION};
    struct filters_state *state = state_begin(exchange, sizeof(*state), release);
    if (state == NULL || !query_segment(exchange, "name", name_check) ||
        !query_read(exchange, specs, 1, &state->params) ||
        !access_read_site(exchange, &state->params, &job.site) ||
        !read_body(exchange, state, &job)) {
        return HANDLER_REPLY;
    }
    bool reads = action == FILTER_INFO || action == FILTER_CHECK;
    exchange->job.op = reads ? STORAGE_FILTER_READ : STORAGE_FILTER_WRITE;
    exchange->job.u.filter = job;
    return HANDLER_WAIT;
}

enum handler_result filter_put_start(struct http_exchange *exchange)
{
    return start(exchange, FILTER_CREATE);
}

enum handler_result filter_get_start(struct http_exchange *exchange)
{
    return start(exchange, FILTER_INFO);
}

enum handler_result filter_delete_start(struct http_exchange *exchange)
{
    return start(exchange, FILTER_DROP);
}

enum handler_result filter_add_start(struct http_exchange *exchange)
{
    return start(exchange, FILTER_ADD);
}

enum handler_result filter_check_start(struct http_exchange *exchange)
{
    return start(exchange, FILTER_CHECK);
}

/* ---- answers ---- */

static json_t *figures_json(const struct filter_job *job)
{
    const struct filter_figures *f = &job->figures;
    return json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:I,s:f}", "site",
        text_json(job->site), "name", text_json(job->name), "capacity", (json_int_t)f->capacity,
        "items", (json_int_t)f->items, "layers", (json_int_t)f->layers, "bytes",
        (json_int_t)f->bytes, "hashes", (json_int_t)f->hashes, "bits_per_item",
        (double)f->bytes * 8 / (double)f->capacity, "fill", f->fill, "error_rate", f->error,
        "expansion", (json_int_t)f->expansion, "expected_false_positive_rate", f->false_positives);
}

static json_t *answers_json(const struct filter_job *job, const char *member)
{
    json_t *answers = json_array();
    for (size_t i = 0; answers != NULL && i < job->n_items; i++) {
        json_array_append_new(answers, json_boolean(job->answers[i] == FILTER_YES));
    }
    return json_pack("{s:o}", member, answers);
}

/* Answer 409: some items found no room.  All others are in the filter. */
static void reply_full(struct http_exchange *exchange, const struct filter_job *job, size_t refused)
{
    json_t *errors = json_array();
    size_t listed = 0;
    for (size_t i = 0; errors != NULL && i < job->n_items && listed < ERRORS_MAX; i++) {
        if (job->answers[i] == FILTER_REFUSED) {
            char pointer[32];
            (void)snprintf(pointer, sizeof(pointer), "/items/%zu", i);
            json_array_append_new(errors,
                json_pack("{s:s,s:s}", "pointer", pointer, "detail", "was not added: no room"));
            listed++;
        }
    }
    problem_reply_errors(&exchange->response, PROBLEM_CONFLICT, errors,
        "the filter is full and does not grow (expansion 0): %zu of %zu items were not added, "
        "the others are in",
        refused, job->n_items);
}

static void reply_added(struct http_exchange *exchange, const struct filter_job *job)
{
    size_t refused = 0;
    for (size_t i = 0; i < job->n_items; i++) {
        refused += job->answers[i] == FILTER_REFUSED ? 1 : 0;
    }
    if (refused > 0) {
        reply_full(exchange, job, refused);
    } else {
        reply_json(&exchange->response, 200, answers_json(job, "added"));
    }
}

static void reply_done(struct http_exchange *exchange, const struct filter_job *job)
{
    switch (job->action) {
    case FILTER_CREATE:
        reply_json(&exchange->response, job->created ? 201 : 200, figures_json(job));
        break;
    case FILTER_INFO:
        reply_json(&exchange->response, 200, figures_json(job));
        break;
    case FILTER_DROP:
        reply_empty(&exchange->response, 204);
        break;
    case FILTER_ADD:
        reply_added(exchange, job);
        break;
    case FILTER_CHECK:
        reply_json(&exchange->response, 200, answers_json(job, "seen"));
        break;
    }
}

void filter_finish(struct http_exchange *exchange)
{
    const struct storage_job *job = &exchange->job;
    const struct filter_job *filter = &job->u.filter;
    if (job->err != STORAGE_OK) {
        problem_from_storage(&exchange->response, job->err, job->detail);
        return;
    }
    switch (filter->outcome) {
    case FILTER_DONE:
        reply_done(exchange, filter);
        break;
    case FILTER_ABSENT:
        problem_reply(&exchange->response, PROBLEM_NOT_FOUND, "there is no such filter");
        break;
    case FILTER_DIFFERS:
        problem_reply(&exchange->response, PROBLEM_CONFLICT,
            "the filter exists with other parameters: capacity %llu, error_rate %g, expansion %u",
            (unsigned long long)filter->figures.created_capacity, filter->figures.error,
            filter->figures.expansion);
        break;
    }
}
