#include "handlers/grafana/query.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/access/access.h"
#include "handlers/grafana/names.h"
#include "handlers/grafana/target_reader.h"
#include "handlers/grafana/time.h"
#include "handlers/http/app.h"
#include "handlers/reply/json_body.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "handlers/text/timestamp.h"
#include "handlers/text/utf8.h"
#include "storage/time/units.h"

#define DEFAULT_WINDOW_S (6 * HOUR_S)
#define GRAFANA_DETAIL   320 /* bytes of a sentence that has a name of 64 bytes in it, or a range */

static const struct {
    const char *name, *label;
} metrics[GRAFANA_METRICS] = {
    [GRAFANA_UV] = {"uv", "Visitors (distinct)"},
    [GRAFANA_PV] = {"pv", "Page views"},
    [GRAFANA_IPS] = {"ips", "IP addresses (distinct)"},
    [GRAFANA_VISITS] = {"visits", "Visits"},
    [GRAFANA_DAU] = {"dau", "Daily active users"},
    [GRAFANA_VIEWS_PER_VISIT] = {"views_per_visit", "Page views of a visit"},
    [GRAFANA_BOUNCE_RATE] = {"bounce_rate", "Bounce rate (0 to 1)"},
    [GRAFANA_VISIT_DURATION] = {"visit_duration_s", "Duration of a visit (s)"},
    [GRAFANA_BREAKDOWN] = {"breakdown", "Breakdown (a table)"},
};

const char *grafana_metric_name(enum grafana_metric metric)
{
    return metrics[metric].name;
}

const char *grafana_metric_label(enum grafana_metric metric)
{
    return metrics[metric].label;
}

bool grafana_metric_is_counted(const struct app *app, enum grafana_metric metric)
{
    return metric != GRAFANA_IPS || app->addresses;
}

static void reply_about(struct http_exchange *exchange, struct slice id, enum problem problem,
    const char *format, va_list arguments)
{
    char detail[GRAFANA_DETAIL];
    (void)vsnprintf(detail, sizeof(detail), format, arguments);
    problem_reply(&exchange->response, problem, "%s%.*s%s%s", id.n > 0 ? "query " : "",
        (int)utf8_fit(id, 64), id.n > 0 ? id.p : "", id.n > 0 ? ": " : "", detail);
}

void grafana_problem(struct http_exchange *exchange, const struct grafana_target *target,
    enum problem problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    reply_about(exchange, target->ref_id, problem, format, arguments);
    va_end(arguments);
}

bool grafana_refuse(const struct target_reader *r, const char *format, ...)
{
    struct slice id = r->target != NULL ? r->target->ref_id : (struct slice){0};
    va_list arguments;
    va_start(arguments, format);
    reply_about(r->exchange, id, PROBLEM_MALFORMED, format, arguments);
    va_end(arguments);
    return false;
}

void grafana_notice(struct grafana_target *target, const char *severity, const char *format, ...)
{
    char text[GRAFANA_DETAIL];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (target->notices == NULL) {
        target->notices = json_array();
    }
    /* A text that was cut off may end within a character: then json_pack() makes no notice. */
    json_array_append_new(
        target->notices, json_pack("{s:s,s:s}", "severity", severity, "text", text));
}

json_t *grafana_body(struct http_exchange *exchange)
{
    if (!json_body_type(exchange, true)) {
        return NULL;
    }
    if (exchange->request.body.n == 0) {
        json_t *empty = json_object();
        if (empty == NULL) {
            (void)problem_no_memory(&exchange->response);
        }
        return empty;
    }
    json_t *root = json_body_read(exchange, 0);
    if (root != NULL && !json_is_object(root)) {
        problem_reply(&exchange->response, PROBLEM_MALFORMED, "the body must be a JSON object");
        json_decref(root);
        return NULL;
    }
    return root;
}

/* ---- range ---- */

/* Read one end of the range. */
static bool read_time(const struct target_reader *r, const char *name, enum timestamp_round round,
    int64_t *ret_s, bool *ret_is_now)
{
    const json_t *value = json_object_get(json_object_get(r->root, "range"), name);
    const char *detail = "must be a time";
    return value == NULL || json_is_null(value) ||
           grafana_time(value, r->target->zone, r->exchange->request.now_ms, round, ret_s,
               ret_is_now, &detail) ||
           grafana_refuse(r, "range.%s: %s", name, detail);
}

static bool read_window(const struct target_reader *r)
{
    struct grafana_target *target = r->target;
    bool from_is_now;
    int64_t now_s = r->exchange->request.now_ms / 1000;
    const json_t *range = json_object_get(r->root, "range");
    if (range != NULL && !json_is_null(range) && !json_is_object(range)) {
        return grafana_refuse(r, "range must be an object");
    }
    target->to_is_now = true;
    target->window.to_s = bucket_at(zone_utc(), LEVEL_MINUTE, now_s).end_s;
    if (!read_time(r, "to", TIMESTAMP_UP, &target->window.to_s, &target->to_is_now)) {
        return false;
    }
    target->window.from_s =
        target->window.to_s > DEFAULT_WINDOW_S ? target->window.to_s - DEFAULT_WINDOW_S : 0;
    if (!read_time(r, "from", TIMESTAMP_DOWN, &target->window.from_s, &from_is_now)) {
        return false;
    }
    return target->window.to_s > target->window.from_s ||
           grafana_refuse(r, "range.to: must be later than range.from");
}

/* ---- payload ---- */

static bool read_step(const struct target_reader *r, struct slice text)
{
    r->target->whole_window = slice_equal(text, SLICE("window"));
    return r->target->whole_window || text.n == 0 || step_parse(text, &r->target->step) ||
           grafana_refuse(r, "step: must be one of auto, window, 1m, 5m, 15m, 1h, 1d, 1w and 1M");
}

static bool read_zone(const struct target_reader *r, struct slice name)
{
    const char *fault = "there is no such zone";
    r->target->zone = name.n == 0 ? storage_site_zone(r->exchange->app->storage, r->target->site)
                                  : storage_zone(r->exchange->app->storage, name, &fault);
    return r->target->zone != NULL || grafana_refuse(r, "tz: %s", fault);
}

bool grafana_read_name(
    const struct target_reader *r, const char *what, const json_t *value, struct slice *ret)
{
    json_t *names = grafana_names(value);
    size_t n = json_object_size(names);
    struct slice name = grafana_first_name(names);
    if (json_array_append_new(r->target->read, names) != 0) {
        return problem_no_memory(&r->exchange->response);
    }
    *ret = n == 1 ? name : *ret;
    return n <= 1 || grafana_refuse(r, "%s: one at a time", what);
}

/* The same for the member @name of the payload.  *ret is empty if there is none. */
static bool read_member(
    const struct target_reader *r, const json_t *payload, const char *name, struct slice *ret)
{
    *ret = SLICE("");
    return grafana_read_name(r, name, json_object_get(payload, name), ret);
}

/* The members that a payload may have. */
#define ALL (~0u)
static const struct {
    const char *name;
    unsigned of; /* bits 1 << enum grafana_metric: the metrics that the member is for */
} members[] = {{"site", ALL}, {"page", ALL}, {"pages", ALL}, {"pageset", ALL}, {"tz", ALL},
    {"step", ALL & ~(1u << GRAFANA_BREAKDOWN)}, {"action", 1u << GRAFANA_DAU},
    {"by", 1u << GRAFANA_BREAKDOWN}, {"limit", 1u << GRAFANA_BREAKDOWN}};
#define MEMBERS (sizeof(members) / sizeof(members[0]))

static bool is_empty(const json_t *value)
{
    return value == NULL || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* Does each member of the payload have names?  (`limit` may be a number, too.)  A member that means
 * nothing gets a notice. */
static bool check_members(const struct target_reader *r, json_t *payload)
{
    struct grafana_target *target = r->target;
    const char *name;
    json_t *value;
    json_object_foreach(payload, name, value)
    {
        size_t i = 0;
        while (i < MEMBERS && strcmp(members[i].name, name) != 0) {
            i++;
        }
        if (i == MEMBERS) {
            grafana_notice(target, "warning", "%.*s in the payload means nothing",
                (int)utf8_fit(slice_of(name), 64), name);
        } else if (!grafana_may_be_names(value) && strcmp(name, "limit") != 0) {
            return grafana_refuse(r, "%s: " NO_NAMES, name);
        } else if ((members[i].of >> target->metric & 1) == 0 && !is_empty(value)) {
            grafana_notice(target, "info", "%s in the payload means nothing to %s", name,
                grafana_metric_name(target->metric));
        }
    }
    return true;
}

/* Add a notice for each wish that dau, which counts by whole days, cannot fulfil. */
static void note_days(const struct target_reader *r)
{
    struct grafana_target *target = r->target;
    bool daily = target->whole_window || target->step == STEP_AUTO || target->step == STEP_DAY;
    if (target->metric != GRAFANA_DAU) {
        return;
    }
    if (!daily) {
        grafana_notice(target, "info", "dau has a figure for each day, or with step=window one");
    }
    if (target->zone != storage_site_zone(r->exchange->app->storage, target->site)) {
        grafana_notice(target, "info", "the days of dau are those of the site's own time zone");
    }
}

static bool read_action(const struct target_reader *r, json_t *payload)
{
    struct slice action;
    if (!read_member(r, payload, "action", &action)) {
        return false;
    }
    const char *fault = action.n > 0 ? event_check_action(action) : NULL;
    r->target->action = action.n > 0 ? action : SLICE("active");
    return fault == NULL || grafana_refuse(r, "action: %s", fault);
}

static bool read_payload(const struct target_reader *r, json_t *payload)
{
    struct slice step;
    struct slice zone;
    if (payload != NULL && !json_is_object(payload) && !json_is_null(payload)) {
        return grafana_refuse(r, "payload must be an object");
    }
    bool ok = check_members(r, payload) && grafana_filters_read(r, payload) &&
              access_site(r->exchange, r->target->site) && read_member(r, payload, "step", &step) &&
              read_step(r, step) && read_action(r, payload) &&
              read_member(r, payload, "tz", &zone) && read_zone(r, zone);
    if (ok) {
        note_days(r);
    }
    return ok;
}

static bool read_breakdown(const struct target_reader *r, json_t *payload)
{
    struct grafana_target *target = r->target;
    struct slice by;
    if (!read_member(r, payload, "by", &by)) {
        return false;
    }
    const char *fault = grafana_breakdown_read(
        r->exchange->app, target->site, by, json_object_get(payload, "limit"), &target->breakdown);
    return fault == NULL || grafana_refuse(r, "%s", fault);
}

/* ---- targets ---- */

static bool read_metric(const struct target_reader *r, struct slice name)
{
    for (int metric = 0; metric < GRAFANA_METRICS; metric++) {
        if (slice_equal(name, slice_of(metrics[metric].name))) {
            if (!grafana_metric_is_counted(r->exchange->app, (enum grafana_metric)metric)) {
                grafana_problem(
                    r->exchange, r->target, PROBLEM_UNACCEPTABLE, "%s", PROBLEM_NO_ADDRESSES);
                return false;
            }
            r->target->metric = (enum grafana_metric)metric;
            return true;
        }
    }
    return grafana_refuse(r,
        "there is no metric %.*s: uv, pv, ips, visits, dau, views_per_visit, bounce_rate, "
        "visit_duration_s and breakdown are",
        (int)utf8_fit(name, 64), name.p);
}

/* Is there nothing to ask?  The target is hidden, or its metric is not chosen yet. */
static bool is_idle(const json_t *target)
{
    struct slice name = json_text_of(json_object_get(target, "target"));
    return !json_is_object(target) || json_is_true(json_object_get(target, "hide")) ||
           name.n == 0 || slice_equal(name, SLICE("select metric"));
}

static bool read_target(struct target_reader *r, json_t *asked)
{
    struct grafana_target *target = r->target = &r->query->targets[r->query->n_targets++];
    json_t *payload = json_object_get(asked, "payload");
    target->ref_id = json_text_of(json_object_get(asked, "refId"));
    target->read = json_array();
    target->site = EVENT_SITE_DEFAULT;
    target->step = STEP_AUTO;
    target->table = slice_equal(json_text_of(json_object_get(asked, "type")), SLICE("table"));
    return read_metric(r, json_text_of(json_object_get(asked, "target"))) &&
           read_payload(r, payload) &&
           ((target->n_pages == 0 && target->set.n == 0) ||
               !grafana_metric_of_sites(target->metric) ||
               grafana_refuse(r, "%s is of whole sites: it takes no page",
                   grafana_metric_name(target->metric))) &&
           (target->metric != GRAFANA_BREAKDOWN || read_breakdown(r, payload)) && read_window(r);
}

static double number_of(const json_t *root, const char *name, double otherwise)
{
    const json_t *value = json_object_get(root, name);
    return json_is_number(value) && json_number_value(value) >= 1 ? json_number_value(value)
                                                                  : otherwise;
}

static bool read_targets(struct target_reader *r)
{
    json_t *targets = json_object_get(r->root, "targets");
    size_t n = json_array_size(targets);
    size_t i;
    json_t *target;
    if (n > GRAFANA_TARGETS_MAX) {
        return grafana_refuse(r, "at most %d targets in one request", GRAFANA_TARGETS_MAX);
    }
    r->query->targets = calloc(n + 1, sizeof(*r->query->targets));
    if (r->query->targets == NULL) {
        return problem_no_memory(&r->exchange->response);
    }
    json_array_foreach(targets, i, target)
    {
        if (!is_idle(target) && !read_target(r, target)) {
            return false;
        }
    }
    return true;
}

bool grafana_query_read(struct http_exchange *exchange, struct grafana_query *ret)
{
    *ret = (struct grafana_query){.root = grafana_body(exchange)};
    if (ret->root == NULL) {
        return false;
    }
    double points = number_of(ret->root, "maxDataPoints", STEP_AUTO_MAX);
    double interval_ms = number_of(ret->root, "intervalMs", 1000);
    ret->max_points = points < STEP_POINTS_MAX ? (size_t)points : STEP_POINTS_MAX;
    ret->interval_s =
        interval_ms < 1e14 ? (int64_t)ceil(interval_ms / 1000) : INT64_C(100000000000);
    struct target_reader r = {.exchange = exchange, .root = ret->root, .query = ret};
    return read_targets(&r);
}

void grafana_query_release(struct grafana_query *query)
{
    for (size_t i = 0; i < query->n_targets; i++) {
        json_decref(query->targets[i].read);
        json_decref(query->targets[i].names);
        json_decref(query->targets[i].notices);
        free(query->targets[i].pages);
    }
    free(query->targets);
    json_decref(query->root);
    *query = (struct grafana_query){0};
}
