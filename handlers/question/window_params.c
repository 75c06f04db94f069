#include "handlers/question/window_params.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/text/check.h"
#include "handlers/text/timestamp.h"
#include "storage/job/counted_name.h"
#include "storage/time/units.h"

#define DEFAULT_WINDOW_S DAY_S

void window_params_release(struct window_params *p)
{
    params_release(&p->params);
    free(p->pages);
    free(p->names);
    *p = (struct window_params){0};
}

static bool read_pages(struct http_exchange *exchange, struct window_params *p)
{
    size_t n = params_count(&p->params, "page");
    if (n == 0) {
        return true;
    }
    p->pages = malloc(n * sizeof(*p->pages));
    if (p->pages == NULL) {
        return problem_no_memory(&exchange->response);
    }
    for (const struct param *at = NULL; (at = params_next(&p->params, "page", at)) != NULL;) {
        const char *fault = event_check_page(at->value);
        if (fault != NULL) {
            return query_refuse(exchange, "page", fault);
        }
        p->pages[p->n_pages++] = at->value;
    }
    return true;
}

bool window_params_is_name(const struct param *param)
{
    struct slice name = slice_of(param->spec->name);
    return slice_equal(name, SLICE("event")) || slice_equal(name, SLICE("section")) ||
           dimension_find(name) != DIMENSION_N;
}

static const char *check_name(const struct param *param)
{
    struct slice name = slice_of(param->spec->name);
    if (slice_equal(name, SLICE("event"))) {
        return event_check_name(param->value);
    }
    if (slice_equal(name, SLICE("section"))) {
        return name_check(param->value);
    }
    return event_check_value(param->value);
}

/* Write the name in @param, with its mark, to @to.  Returns what was written. */
static struct slice mark_name(const struct param *param, char *to)
{
    struct slice name = slice_of(param->spec->name);
    if (slice_equal(name, SLICE("event"))) {
        return event_name_mark(param->value, to);
    }
    /* For `section`, which is no dimension, dimension_find() returns DIMENSION_N.  In a struct
     * event_value that number stands for a section. */
    struct event_value value = {.text = param->value, .dimension = (uint8_t)dimension_find(name)};
    return value_name(&value, to);
}

static bool read_names(struct http_exchange *exchange, struct window_params *p)
{
    size_t n = p->params.n; /* so many names at most, whose texts are no longer than the query */
    p->names = malloc(n * (sizeof(*p->names) + NAME_CLASS_MAX) + exchange->request.query.n + 1);
    if (p->names == NULL) {
        return problem_no_memory(&exchange->response);
    }
    char *to = (char *)(p->names + n);
    for (size_t i = 0; i < n; i++) {
        const struct param *param = &p->params.pairs[i];
        const char *name = param->spec->name;
        if (!window_params_is_name(param)) {
            continue;
        }
        const char *fault = check_name(param);
        if (fault != NULL) {
            return query_refuse(exchange, name, fault);
        }
        p->name_param = p->n_names == 0 ? name : p->name_param;
        p->mixed_names = p->mixed_names || strcmp(p->name_param, name) != 0;
        p->names[p->n_names] = mark_name(param, to);
        to += p->names[p->n_names++].n;
    }
    return true;
}

static bool read_round(struct http_exchange *exchange, struct window_params *p)
{
    struct slice value;
    if (!params_get(&p->params, "round", &value)) {
        return true;
    }
    p->round_outer = slice_equal(value, SLICE("outer"));
    return p->round_outer || query_refuse(exchange, "round", "must be outer");
}

static bool read_zone(struct http_exchange *exchange, struct window_params *p)
{
    struct slice name;
    const char *fault = NULL;
    if (!params_get(&p->params, "tz", &name)) {
        p->zone = storage_site_zone(exchange->app->storage, p->site);
        return true;
    }
    p->zone = storage_zone(exchange->app->storage, name, &fault);
    return p->zone != NULL || query_refuse(exchange, "tz", fault);
}

static bool read_step(struct http_exchange *exchange, struct window_params *p)
{
    struct slice value;
    return !params_get(&p->params, "step", &value) || step_parse(value, &p->step) ||
           query_refuse(exchange, "step", "must be one of 1m, 5m, 15m, 1h, 1d, 1w, 1M and auto");
}

static bool read_time(struct http_exchange *exchange, struct window_params *p, const char *name,
    enum timestamp_round round, int64_t *ret_s, bool *ret_is_now)
{
    struct slice value;
    const char *detail = NULL;
    if (!params_get(&p->params, name, &value)) {
        return true;
    }
    return timestamp_parameter(
               value, p->zone, exchange->request.now_ms, round, ret_s, ret_is_now, &detail) ||
           query_refuse(exchange, name, detail);
}

static bool read_window(struct http_exchange *exchange, struct window_params *p)
{
    bool from_is_now = false;
    int64_t now_s = exchange->request.now_ms / 1000;
    p->to_is_now = true;
    p->window.to_s = bucket_at(zone_utc(), LEVEL_MINUTE, now_s).end_s;
    if (!read_time(exchange, p, "to", TIMESTAMP_UP, &p->window.to_s, &p->to_is_now)) {
        return false;
    }
    p->window.from_s = p->window.to_s - DEFAULT_WINDOW_S;
    if (!read_time(exchange, p, "from", TIMESTAMP_DOWN, &p->window.from_s, &from_is_now)) {
        return false;
    }
    if (p->window.from_s < 0) {
        p->window.from_s = 0; /* `to` lies in the first day of 1970, and `from` was not given */
    }
    return p->window.to_s > p->window.from_s ||
           query_refuse(exchange, "to", "must be later than from");
}

bool window_params_read_with(struct http_exchange *exchange, const struct param_spec *all,
    size_t n_all, struct window_params *ret)
{
    *ret = (struct window_params){0};
    return query_read(exchange, all, n_all, &ret->params) &&
           access_read_site(exchange, &ret->params, &ret->site) && read_pages(exchange, ret) &&
           read_names(exchange, ret) &&
           query_text(exchange, &ret->params, "pageset", name_check, &ret->pageset) &&
           read_zone(exchange, ret) && read_step(exchange, ret) &&
           query_flag(exchange, &ret->params, "explain", &ret->explain) &&
           read_round(exchange, ret) && read_window(exchange, ret);
}

bool window_params_read_all_sites(
    struct http_exchange *exchange, struct window_params *ret, bool *ret_given)
{
    static const struct param_spec specs[] = {
        {"from", false}, {"to", false}, {"tz", false}, {"round", false}};
    size_t n_specs = sizeof(specs) / sizeof(specs[0]);
    *ret = (struct window_params){.site = SLICE("")};
    *ret_given = false;
    if (!query_read(exchange, specs, n_specs, &ret->params)) {
        return false;
    }
    for (size_t i = 0; i < n_specs; i++) {
        *ret_given = *ret_given || params_has(&ret->params, specs[i].name);
    }
    return read_zone(exchange, ret) && read_round(exchange, ret) && read_window(exchange, ret);
}

struct window_question window_params_question(const struct window_params *p)
{
    return (struct window_question){
        .site = p->site,
        .window = p->window,
        .to_is_now = p->to_is_now,
        .round_outer = p->round_outer,
        .explain = p->explain,
    };
}

bool window_params_read_second(struct http_exchange *exchange, struct window_params *p,
    struct window_question *ret, bool *ret_given)
{
    bool from_is_now = false;
    bool has_from = params_has(&p->params, "from2");
    bool has_to = params_has(&p->params, "to2");
    *ret = window_params_question(p);
    ret->to_is_now = false;
    *ret_given = has_from && has_to;
    if (!read_time(exchange, p, "from2", TIMESTAMP_DOWN, &ret->window.from_s, &from_is_now) ||
        !read_time(exchange, p, "to2", TIMESTAMP_UP, &ret->window.to_s, &ret->to_is_now)) {
        return false;
    }
    if (has_from != has_to) {
        return query_refuse(exchange, has_from ? "to2" : "from2",
            "from2 and to2 are given together, or not at all");
    }
    return !*ret_given || ret->window.to_s > ret->window.from_s ||
           query_refuse(exchange, "to2", "must be later than from2");
}
