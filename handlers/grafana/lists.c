/* lists.c - lists of names to choose from, for Grafana's variables, queries and filters.
 *
 * There are three lists.  A variable's query is one of these words:
 *
 *     sites         the sites that the token may read
 *     pages         at most 1,000 pages of a site, those with most page views first; in the time
 *                   range of the request, else in the last 7 days
 *     metrics       the metrics that are counted here
 *
 * The site of `pages` is named by `pages(SITE)`, or by {"site": SITE} in the payload. */
#include "handlers/routes.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/grafana/names.h"
#include "handlers/grafana/query.h"
#include "handlers/grafana/time.h"
#include "handlers/http/app.h"
#include "handlers/reply/json_body.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/reply/state.h"
#include "handlers/text/check.h"
#include "handlers/text/utf8.h"
#include "storage/time/units.h"

#define DEFAULT_WINDOW_S (7 * DAY_S)

/* How a name is written: as an object with two keys, `text` for what is shown and `value` for what
 * is sent.  If `value` is NULL the object has the other key alone; if both are, the name is a bare
 * string. */
struct dress {
    const char *text, *value;
};

static const struct dress bare = {NULL, NULL};
static const struct dress variable = {"__text", "__value"};
static const struct dress option = {"label", "value"};
static const struct dress tag = {"text", NULL};

struct list_state {
    json_t *body;  /* owned */
    json_t *names; /* owned: has the name of the site whose pages are asked for; or NULL */
    const struct dress *dress;
    struct slice site;
};

static void release(struct http_exchange *exchange)
{
    struct list_state *state = exchange->state;
    json_decref(state->body);
    json_decref(state->names);
    free(state);
}

static void add_name(json_t *list, const struct dress *dress, struct slice name)
{
    json_t *text = text_json(name);
    if (dress->text == NULL) {
        json_array_append_new(list, text);
    } else if (dress->value == NULL) {
        json_array_append_new(list, json_pack("{s:o}", dress->text, text));
    } else {
        json_array_append_new(list, json_pack("{s:O,s:o}", dress->text, text, dress->value, text));
    }
}

/* Make the state, and read the body.  NULL: the response says what is wrong. */
static struct list_state *begin(struct http_exchange *exchange, const struct dress *dress)
{
    struct list_state *state = state_begin(exchange, sizeof(*state), release);
    if (state == NULL) {
        return NULL;
    }
    state->dress = dress;
    state->site = EVENT_SITE_DEFAULT;
    state->body = grafana_body(exchange);
    return state->body != NULL ? state : NULL;
}

/* ---- what is asked for ---- */

static enum handler_result reply_metrics(struct http_exchange *exchange)
{
    const struct list_state *state = exchange->state;
    json_t *list = json_array();
    for (int metric = 0; metric < GRAFANA_METRICS; metric++) {
        enum grafana_metric which = (enum grafana_metric)metric;
        if (grafana_metric_is_counted(exchange->app, which)) {
            add_name(list, state->dress, slice_of(grafana_metric_name(which)));
        }
    }
    reply_json(&exchange->response, 200, list);
    return HANDLER_REPLY;
}

static enum handler_result ask_sites(struct http_exchange *exchange)
{
    exchange->job.op = STORAGE_SITES;
    return HANDLER_WAIT;
}

/* Read one end of a time range.  *ret_s is untouched if the end is missing or cannot be read. */
static void read_time(const struct http_exchange *exchange, const json_t *range, const char *name,
    enum timestamp_round round, int64_t *ret_s)
{
    bool is_now;
    const char *detail;
    (void)grafana_time(json_object_get(range, name), zone_utc(), exchange->request.now_ms, round,
        ret_s, &is_now, &detail);
}

static struct window read_window(const struct http_exchange *exchange, const json_t *body)
{
    const json_t *range = json_object_get(body, "range");
    struct window window;
    range = range != NULL ? range : json_object_get(body, "timeRange");
    window.to_s = bucket_at(zone_utc(), LEVEL_MINUTE, exchange->request.now_ms / 1000).end_s;
    read_time(exchange, range, "to", TIMESTAMP_UP, &window.to_s);
    window.from_s = window.to_s > DEFAULT_WINDOW_S ? window.to_s - DEFAULT_WINDOW_S : 0;
    read_time(exchange, range, "from", TIMESTAMP_DOWN, &window.from_s);
    if (window.from_s >= window.to_s) {
        window.from_s = window.to_s > DEFAULT_WINDOW_S ? window.to_s - DEFAULT_WINDOW_S : 0;
    }
    return window;
}

/* Ask for the pages of the site that @site names, else of the default site. */
static enum handler_result ask_pages(struct http_exchange *exchange, const json_t *site)
{
    struct list_state *state = exchange->state;
    state->names = grafana_names(site);
    bool ready =
        state->names != NULL ? state_has_time(exchange) : problem_no_memory(&exchange->response);
    if (!ready) {
        return HANDLER_REPLY;
    }
    if (json_object_size(state->names) > 0) {
        state->site = grafana_first_name(state->names);
    }
    const char *fault = event_check_site(state->site);
    if (fault != NULL) {
        problem_reply(&exchange->response, PROBLEM_MALFORMED, "site: %s", fault);
        return HANDLER_REPLY;
    }
    if (!access_site(exchange, state->site)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_PAGES;
    exchange->job.u.pages = (struct pages_job){
        .asked = {.site = state->site,
            .window = read_window(exchange, state->body),
            .round_outer = true},
        .limit = PAGES_LIMIT_MAX,
    };
    return HANDLER_WAIT;
}

/* The site in @text, "pages(SITE)", as JSON: a new reference.  NULL: @text has another form. */
static json_t *site_in(struct slice text)
{
    if (text.n < 8 || !slice_begins(text, SLICE("pages(")) || text.p[text.n - 1] != ')') {
        return NULL;
    }
    return json_stringn(text.p + 6, text.n - 7);
}

/* Ask for the list that @words names, or answer.  @site is the payload's. */
static enum handler_result ask_words(
    struct http_exchange *exchange, struct slice words, const json_t *site)
{
    json_t *named = site_in(words);
    enum handler_result result = HANDLER_REPLY;
    if (slice_equal(words, SLICE("sites"))) {
        result = ask_sites(exchange);
    } else if (slice_equal(words, SLICE("pages")) || named != NULL) {
        result = ask_pages(exchange, named != NULL ? named : site);
    } else if (words.n == 0 || slice_equal(words, SLICE("metrics"))) {
        result = reply_metrics(exchange);
    } else {
        problem_reply(&exchange->response, PROBLEM_MALFORMED,
            "there is no list %.*s: sites, pages, pages(SITE) and metrics are",
            (int)utf8_fit(words, 64), words.p);
    }
    json_decref(named);
    return result;
}

/* ---- endpoints ---- */

enum handler_result grafana_variable_start(struct http_exchange *exchange)
{
    struct list_state *state = begin(exchange, &variable);
    const json_t *payload = state == NULL ? NULL : json_object_get(state->body, "payload");
    return state == NULL ? HANDLER_REPLY
                         : ask_words(exchange, json_text_of(json_object_get(payload, "target")),
                               json_object_get(payload, "site"));
}

enum handler_result grafana_search_start(struct http_exchange *exchange)
{
    struct list_state *state = begin(exchange, &bare);
    return state == NULL
               ? HANDLER_REPLY
               : ask_words(exchange, json_text_of(json_object_get(state->body, "target")), NULL);
}

enum handler_result grafana_options_start(struct http_exchange *exchange)
{
    struct list_state *state = begin(exchange, &option);
    if (state == NULL) {
        return HANDLER_REPLY;
    }
    struct slice name = json_text_of(json_object_get(state->body, "name"));
    if (slice_equal(name, SLICE("site"))) {
        return ask_sites(exchange);
    }
    if (slice_equal(name, SLICE("page")) || slice_equal(name, SLICE("pages"))) {
        return ask_pages(
            exchange, json_object_get(json_object_get(state->body, "payload"), "site"));
    }
    reply_json(&exchange->response, 200, json_array()); /* /metrics has the options of others */
    return HANDLER_REPLY;
}

/* The site in the filters that were chosen so far; NULL: there is no filter on site. */
static const json_t *filtered_site(const json_t *body)
{
    size_t i;
    const json_t *filter;
    json_array_foreach(json_object_get(body, "filters"), i, filter)
    {
        if (slice_equal(json_text_of(json_object_get(filter, "key")), SLICE("site"))) {
            return json_object_get(filter, "value");
        }
    }
    return NULL;
}

enum handler_result grafana_tag_values_start(struct http_exchange *exchange)
{
    struct list_state *state = begin(exchange, &tag);
    if (state == NULL) {
        return HANDLER_REPLY;
    }
    struct slice key = json_text_of(json_object_get(state->body, "key"));
    if (slice_equal(key, SLICE("site"))) {
        return ask_sites(exchange);
    }
    if (slice_equal(key, SLICE("page"))) {
        return ask_pages(exchange, filtered_site(state->body));
    }
    reply_json(&exchange->response, 200, json_array());
    return HANDLER_REPLY;
}

void grafana_list_finish(struct http_exchange *exchange)
{
    const struct list_state *state = exchange->state;
    const struct storage_job *job = &exchange->job;
    if (job->err != STORAGE_OK && job->err != STORAGE_NOT_KEPT) {
        problem_from_storage(&exchange->response, job->err, job->detail);
        return;
    }
    json_t *list = json_array();
    if (job->err == STORAGE_OK && job->op == STORAGE_SITES) {
        for (size_t i = 0; i < job->u.sites.n_sites; i++) {
            if (access_has_site(exchange, job->u.sites.sites[i])) {
                add_name(list, state->dress, job->u.sites.sites[i]);
            }
        }
    } else if (job->err == STORAGE_OK) {
        for (size_t i = 0; i < job->u.pages.n_rows; i++) {
            add_name(list, state->dress, job->u.pages.rows[i].page);
        }
    }
    reply_json(&exchange->response, 200, list);
}
