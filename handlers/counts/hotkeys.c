/* hotkeys.c - GET /hotkeys: the pages that are written and read most.
 *
 * The answer is made at once, from the memory of this process. */
#include "handlers/routes.h"

#include <jansson.h>
#include <math.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/text/params.h"

#define HOTKEYS_DEFAULT 10
#define HOTKEYS_MAX     1000

static const struct param_spec specs[] = {{"limit", false}};
static const struct csv_shape rows = {
    "pages", {"site", "page", "reads_per_s", "writes_per_s", "error"}};

/* A rate, rounded to thousandths. */
static json_t *rate(double per_s)
{
    return json_real(round(per_s * 1000) / 1000);
}

/* At most @limit of the pages, of sites that the token may read. */
static json_t *answer(
    const struct http_exchange *exchange, const struct hot_page *pages, size_t n, size_t limit)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < n && json_array_size(list) < limit; i++) {
        const struct hot_page *page = &pages[i];
        if (!access_has_site(exchange, page->site)) {
            continue;
        }
        json_array_append_new(list,
            json_pack("{s:o,s:o,s:o,s:o,s:o}", "site", json_stringn(page->site.p, page->site.n),
                "page", json_stringn(page->page.p, page->page.n), "reads_per_s",
                rate(page->reads_per_s), "writes_per_s", rate(page->writes_per_s), "error",
                rate(page->error)));
    }
    return json_pack("{s:o}", "pages", list);
}

enum handler_result hotkeys_start(struct http_exchange *exchange)
{
    struct params params = {0};
    struct hot_page *pages = NULL;
    size_t limit = HOTKEYS_DEFAULT;
    size_t n = 0;
    if (!query_read(exchange, specs, 1, &params)) {
        return HANDLER_REPLY;
    }
    bool ok = params_number(&params, "limit", HOTKEYS_MAX, &limit);
    params_release(&params);
    if (!ok) {
        problem_reply_parameter(&exchange->response, PROBLEM_MALFORMED, "limit",
            "must be a whole number from 1 to %d", HOTKEYS_MAX);
    } else if (!storage_hot_pages(exchange->app->storage, HOTKEYS_MAX, &pages, &n)) {
        problem_from_storage(&exchange->response, STORAGE_NOMEM, NULL);
    } else {
        csv_reply(exchange, 200, answer(exchange, pages, n, limit), &rows);
        storage_hot_pages_release(pages, n);
    }
    return HANDLER_REPLY;
}
