/* fuzz_body.c - libFuzzer target: requests whose bodies jansson reads: POST /seen, filters and page
 * sets.
 *
 * The input is a letter that chooses the endpoint, its query up to a line's end, and the body.
 * What becomes a job keeps the rules of its job; all else is refused with a problem that is JSON,
 * whatever stood in the request.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "handlers/http/app.h"
#include "handlers/http/http.h"
#include "handlers/routes.h"
#include "handlers/text/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* Of storage, which is not there: only figures ask for this, and no request here is one for them.
 * Weak: replay.c is linked with storage. */
__attribute__((weak)) bool storage_spans_rotation(struct storage *storage, struct window window)
{
    (void)storage;
    (void)window;
    return false;
}

static void check_seen(const struct storage_job *job)
{
    const struct seen_job *seen = &job->u.seen;
    require(job->op == STORAGE_SEEN && event_check_site(seen->site) == NULL);
    require(event_check_user(seen->user) == NULL && seen->set.name.n == 0);
    require(seen->n_pages >= 1 && seen->n_pages <= 1000 && seen->each != NULL);
    for (size_t i = 0; i < seen->n_pages; i++) {
        require(event_check_page(seen->pages[i]) == NULL && !seen->each[i]);
    }
}

static void check_filter(const struct storage_job *job)
{
    const struct filter_job *filter = &job->u.filter;
    require(job->op == STORAGE_FILTER_READ || job->op == STORAGE_FILTER_WRITE);
    require(event_check_site(filter->site) == NULL);
    if (filter->action == FILTER_CREATE) {
        require(filter->capacity >= 1 && filter->capacity <= BLOOM_CAPACITY_MAX);
        require(filter->error >= BLOOM_ERROR_MIN && filter->error <= BLOOM_ERROR_MAX);
        require(filter->expansion == 0 || filter->expansion == 2);
    } else {
        require(filter->n_items >= 1 && filter->n_items <= FILTER_ITEMS_MAX);
        for (size_t i = 0; i < filter->n_items; i++) {
            require(filter->items[i].n > 0 && filter->answers != NULL);
        }
    }
}

static void check_page_set(const struct storage_job *job)
{
    const struct page_set_job *set = &job->u.page_set;
    require(job->op == STORAGE_PAGE_SET_PUT && event_check_site(set->site) == NULL);
    require(set->n_pages >= 1 && set->n_pages <= PAGE_SET_MAX);
    for (size_t i = 0; i < set->n_pages; i++) {
        require(event_check_page(set->pages[i]) == NULL);
    }
}

static const struct {
    enum handler_result (*start)(struct http_exchange *exchange);
    void (*check)(const struct storage_job *job);
} endpoints[] = {
    {seen_many_start, check_seen},
    {filter_put_start, check_filter},
    {filter_add_start, check_filter},
    {filter_check_start, check_filter},
    {page_set_put_start, check_page_set},
};

#define N_ENDPOINTS (sizeof(endpoints) / sizeof(endpoints[0]))

/* A refusal is of the request, not of the server. */
static void check_refusal(const struct http_response *response)
{
    json_error_t error;
    json_t *problem = json_loadb(response->body, response->body_n, JSON_REJECT_DUPLICATES, &error);
    require(response->status == 400 || response->status == 413 || response->status == 422);
    require(problem != NULL &&
            json_integer_value(json_object_get(problem, "status")) == (json_int_t)response->status);
    require(json_string_length(json_object_get(problem, "detail")) > 0);
    json_decref(problem);
}

static void try_request(size_t which, struct slice query, struct slice body)
{
    static const struct app app = {.seen = true};
    const struct slice fields[HTTP_KNOWN_N] = {[FIELD_CONTENT_TYPE] = SLICE("application/json")};
    char *bytes = malloc(body.n); /* of exactly this size: reading past it is seen */
    if (body.n > 0) {
        memcpy(bytes, body.p, body.n);
    }
    struct http_exchange exchange = {.app = &app,
        .request = {.method = HTTP_POST,
            .segment = SLICE("name"),
            .fields = fields,
            .query = query,
            .body = {bytes, body.n},
            .body_bytes = bytes,
            .now_ms = INT64_C(1767225600000)}};
    if (endpoints[which].start(&exchange) == HANDLER_WAIT) {
        endpoints[which].check(&exchange.job);
    } else {
        check_refusal(&exchange.response);
    }
    if (exchange.release != NULL) {
        exchange.release(&exchange);
    }
    free(exchange.response.body);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const char *text = (const char *)data + 1;
    const char *end = memchr(text, '\n', size - 1);
    size_t n = end != NULL ? (size_t)(end - text) : size - 1;
    struct slice query = {text, n};
    struct slice body = {text + n + (end != NULL), size - 1 - n - (end != NULL)};
    try_request(data[0] % N_ENDPOINTS, query, body);
    return 0;
}
