/* filters.c - which site and pages a target is about: its payload, and the dashboard's filters. */
#include <stdlib.h>

#include "handlers/grafana/names.h"
#include "handlers/grafana/query.h"
#include "handlers/grafana/target_reader.h"
#include "handlers/reply/json_body.h"
#include "handlers/text/check.h"
#include "handlers/text/utf8.h"

/* Delete those of @names that are not in @others. */
static void keep_common(json_t *names, const json_t *others)
{
    const char *name;
    size_t n;
    void *next;
    json_t *value;
    json_object_keylen_foreach_safe(names, next, name, n, value)
    {
        if (json_object_getn(others, name, n) == NULL) {
            json_object_deln(names, name, n);
        }
    }
}

/* Keep only those of the target's pages that are in @names, too.  No names stand for all pages.
 * The reference to @names is taken over. */
static bool narrow(const struct target_reader *r, json_t *names)
{
    struct grafana_target *target = r->target;
    size_t n = json_object_size(names);
    if (names == NULL) {
        return problem_no_memory(&r->exchange->response);
    }
    if (n == 0 || n > PAGE_SET_MAX) {
        json_decref(names);
        return n == 0 || grafana_refuse(r, "page: at most %d of them", PAGE_SET_MAX);
    }
    if (target->names != NULL) {
        keep_common(names, target->names);
    }
    json_decref(target->names);
    target->names = names;
    target->nothing = json_object_size(names) == 0;
    return true;
}

static bool set_site(const struct target_reader *r, const json_t *value)
{
    struct grafana_target *target = r->target;
    if (!grafana_read_name(r, "site", value, &target->site_name)) {
        return false;
    }
    target->site = target->site_name.n > 0 ? target->site_name : EVENT_SITE_DEFAULT;
    const char *fault = event_check_site(target->site);
    return fault == NULL || grafana_refuse(r, "site: %s", fault);
}

static bool read_filter(const struct target_reader *r, const json_t *filter)
{
    struct slice key = json_text_of(json_object_get(filter, "key"));
    struct slice operation = json_text_of(json_object_get(filter, "operator"));
    bool one_of = slice_equal(operation, SLICE("=|"));
    const json_t *values = one_of ? json_object_get(filter, "values") : NULL;
    bool is_listed = json_is_string(values) || json_array_size(values) > 0;
    /* Grafana sends all values in `values`, and the first one in `value`, too.  A filter that was
     * written by hand may have `value` alone. */
    const json_t *value = is_listed ? values : json_object_get(filter, "value");
    bool page = slice_equal(key, SLICE("page"));
    if (key.n == 0) {
        return true; /* the filter is not chosen yet */
    }
    if (!page && !slice_equal(key, SLICE("site"))) {
        grafana_notice(r->target, "warning",
            "the filter on %.*s is not applied: there is none but page and site",
            (int)utf8_fit(key, 64), key.p);
        return true;
    }
    if (!one_of && !slice_equal(operation, SLICE("="))) {
        return grafana_refuse(
            r, "filter on %s: = and =| (one of) are the operators", page ? "page" : "site");
    }
    if (!grafana_may_be_names(value)) {
        return grafana_refuse(r, "filter on %s: " NO_NAMES, page ? "page" : "site");
    }
    if (page && grafana_metric_of_sites(r->target->metric)) {
        grafana_notice(r->target, "warning",
            "the filter on page is not applied: %s is of whole sites",
            grafana_metric_name(r->target->metric));
        return true;
    }
    return page ? narrow(r, grafana_names(value)) : set_site(r, value);
}

static bool read_filters(const struct target_reader *r)
{
    static const char *const names[] = {"filters", "adhocFilters"};
    size_t i;
    const json_t *filter;
    for (size_t k = 0; k < 2; k++) {
        const json_t *list = json_object_get(r->root, names[k]);
        if (list != NULL && !json_is_null(list) && !json_is_array(list)) {
            return grafana_refuse(r, "%s must be a list", names[k]);
        }
        json_array_foreach(list, i, filter)
        {
            if (!read_filter(r, filter)) {
                return false;
            }
        }
    }
    return true;
}

/* Read the page set.  A set and single pages together would be a union, which a filter on page must
 * not become. */
static bool set_page_set(const struct target_reader *r, const json_t *value)
{
    struct grafana_target *target = r->target;
    if (!grafana_read_name(r, "pageset", value, &target->set)) {
        return false;
    }
    if (target->set.n > 0 && !name_valid(target->set)) {
        return grafana_refuse(r, "pageset: %s", NAME_DETAIL);
    }
    return target->set.n == 0 || target->names == NULL ||
           grafana_refuse(r, "pageset: must not stand beside page");
}

static bool list_pages(const struct target_reader *r)
{
    struct grafana_target *target = r->target;
    struct slice page;
    json_t *value;
    if (target->names == NULL) {
        return true;
    }
    target->pages = calloc(json_object_size(target->names) + 1, sizeof(*target->pages));
    if (target->pages == NULL) {
        return problem_no_memory(&r->exchange->response);
    }
    json_object_keylen_foreach(target->names, page.p, page.n, value)
    {
        const char *fault = event_check_page(page);
        if (fault != NULL) {
            return grafana_refuse(r, "page: %s", fault);
        }
        target->pages[target->n_pages++] = page;
    }
    return true;
}

bool grafana_filters_read(const struct target_reader *r, const json_t *payload)
{
    return set_site(r, json_object_get(payload, "site")) && read_filters(r) &&
           narrow(r, grafana_names(json_object_get(payload, "page"))) &&
           narrow(r, grafana_names(json_object_get(payload, "pages"))) && list_pages(r) &&
           set_page_set(r, json_object_get(payload, "pageset"));
}
