/* query.h - the body of POST /grafana/query, read and checked.
 *
 * Layer: handlers, pure.  A struct grafana_query belongs to one thread at a time.
 *
 * Grafana sends one request for all queries of a panel; each query is a target.  These members
 * count:
 *
 *     range.from, range.to           the window; the last 6 hours where they are missing
 *     intervalMs, maxDataPoints      how fine a series may be
 *     targets[]                      target (the metric), refId, payload, type, hide
 *     filters                        on page and on site; adhocFilters in older plugins
 *
 * A payload has site, page (or pages), pageset, step, tz, action, by and limit.  Other members of a
 * payload, and filters on other keys, come with dashboards that have other data sources too.  They
 * must not be ignored in silence, because a figure is wider than its dashboard says then: so a
 * notice with the series tells.  All other members of the body are ignored.
 */
#ifndef HANDLERS_GRAFANA_QUERY_H
#define HANDLERS_GRAFANA_QUERY_H

#include <jansson.h>

#include "handlers/grafana/breakdown.h"
#include "handlers/http/http.h"
#include "handlers/reply/problem.h"
#include "storage/base/compiler.h"
#include "storage/time/step.h"

#define GRAFANA_TARGETS_MAX 100

enum grafana_metric {
    GRAFANA_UV,
    GRAFANA_PV,
    GRAFANA_IPS,
    GRAFANA_VISITS,
    GRAFANA_DAU,
    GRAFANA_VIEWS_PER_VISIT,
    GRAFANA_BOUNCE_RATE,
    GRAFANA_VISIT_DURATION,
    GRAFANA_BREAKDOWN, /* a table of values */
};
#define GRAFANA_METRICS 9

/* Is @metric counted for whole sites only, and not for pages? */
static inline bool grafana_metric_of_sites(enum grafana_metric metric)
{
    return metric >= GRAFANA_DAU;
}

/* The name of @metric, as "uv", and its label, which people read: both static. */
const char *grafana_metric_name(enum grafana_metric metric);
const char *grafana_metric_label(enum grafana_metric metric);

/* Is @metric counted here?  The option --ips can turn addresses off. */
bool grafana_metric_is_counted(const struct app *app, enum grafana_metric metric);

/* A series, or one figure, that was asked for.  Slices point into the query's root, or into the
 * objects that are owned here. */
struct grafana_target {
    struct slice ref_id; /* empty: none */
    enum grafana_metric metric;
    json_t *read;           /* owned: the texts of names that were read lie in it */
    struct slice site_name; /* empty: no site was named */
    struct slice site;
    json_t *names;       /* owned: the pages as keys; NULL: the whole site */
    struct slice *pages; /* owned, n_pages of them: their texts lie in names */
    size_t n_pages;
    struct slice set;  /* empty: none */
    bool nothing;      /* no page passes all filters: there is nothing to ask */
    bool whole_window; /* one figure for the window, not a series */
    bool table;        /* the answer has rows of a table, not data points */
    enum step step;
    struct slice action; /* for dau */
    struct grafana_breakdown breakdown;
    const struct zone *zone;
    struct window window;
    bool to_is_now;
    json_t *notices; /* owned: what Grafana shows in the corner of the panel; NULL: nothing */
};

struct grafana_query {
    json_t *root;                   /* owned: the body */
    struct grafana_target *targets; /* owned; n_targets of them */
    size_t n_targets;
    size_t max_points;  /* the panel has room for about so many points of a series */
    int64_t interval_s; /* a step that is finer than this is of no use to the panel */
};

/* Read the exchange's body.  False: the response says what is wrong, and with which target.
 * Release @ret in either case. */
bool grafana_query_read(struct http_exchange *exchange, struct grafana_query *ret) MUST_CHECK;
void grafana_query_release(struct grafana_query *query);

/* Answer with @problem, and say which of the panel's queries is at fault. */
void grafana_problem(struct http_exchange *exchange, const struct grafana_target *target,
    enum problem problem, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Add a notice to the target's series.  @severity is "info" or "warning". */
void grafana_notice(struct grafana_target *target, const char *severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Read the exchange's body, a JSON object; an empty body is {}.  The caller owns the result.  NULL:
 * the response says what is wrong. */
json_t *grafana_body(struct http_exchange *exchange) MUST_CHECK;

#endif
