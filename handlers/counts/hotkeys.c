/* hotkeys.c - GET /hotkeys: the pages that are written and read most.
 *
 * The answer adds up what all processes have counted.  If Redis does not tell in time what the
 * other processes have, the answer is what this process has. */
#include "handlers/routes.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/question/question.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/reply/state.h"
#include "handlers/text/params.h"
#include "storage/base/clock.h"

#define OTHERS_MS 1000 /* the job waits so long for what other processes have counted */

static const struct param_spec specs[] = {{"limit", false}};
static const struct csv_shape rows = {
    "pages", {"site", "page", "reads_per_s", "writes_per_s", "error"}};

/* A rate, rounded to thousandths. */
static json_t *rate(double per_s)
{
    return json_real(round(per_s * 1000) / 1000);
}

/* The answer: at most @limit of the pages, of sites that the token may read. */
static json_t *answer(
    const struct http_exchange *exchange, const struct hot_pages_job *hot, size_t limit)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < hot->n && json_array_size(list) < limit; i++) {
        const struct hot_page *page = &hot->pages[i];
        if (!access_has_site(exchange, page->site)) {
            continue;
        }
        json_array_append_new(
            list, json_pack("{s:o,s:o,s:o,s:o,s:o}", "site", text_json(page->site), "page",
                      text_json(page->page), "reads_per_s", rate(page->reads_per_s), "writes_per_s",
                      rate(page->writes_per_s), "error", rate(page->error)));
    }
    return json_pack("{s:o}", "pages", list);
}

static void release(struct http_exchange *exchange)
{
    free(exchange->state);
}

enum handler_result hotkeys_start(struct http_exchange *exchange)
{
    struct params params = {0};
    size_t *limit = state_begin(exchange, sizeof(*limit), release);
    bool ok = limit != NULL && query_read(exchange, specs, 1, &params) &&
              question_read_limit(exchange, &params, limit);
    params_release(&params);
    if (!ok) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_HOT_PAGES;
    exchange->job.deadline_ms = monotonic_ms() + OTHERS_MS;
    exchange->job.u.hot = (struct hot_pages_job){.pages = NULL};
    return HANDLER_WAIT;
}

void hotkeys_finish(struct http_exchange *exchange)
{
    const size_t *limit = exchange->state;
    if (exchange->job.err == STORAGE_NOMEM) {
        (void)problem_no_memory(&exchange->response);
    } else {
        csv_reply(exchange, 200, answer(exchange, &exchange->job.u.hot, *limit), &rows);
    }
}
