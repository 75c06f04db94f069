/* query.h - the body of POST /grafana/query, read.
 *
 * Layer: handlers, pure.  A struct grafana_query belongs to one thread at a time.
 * What counts: range.from and range.to (the last 6 hours where they are missing), intervalMs,
 * maxDataPoints, targets[].{target, refId, payload, type, hide}, filters (older plugins:
 * adhocFilters). Everything else is passed over.  A payload has site, page (or pages) or pageset,
 * step, tz, action; unknown members, and filters on other things than page and site, are told as a
 * notice with the series: they come with dashboards that have other data sources too, and must not
 * widen a figure in silence.
 */
#ifndef HANDLERS_GRAFANA_QUERY_H
#define HANDLERS_GRAFANA_QUERY_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "storage/time/step.h"

#define GRAFANA_TARGETS_MAX 100

enum grafana_metric { GRAFANA_UV, GRAFANA_PV, GRAFANA_IPS, GRAFANA_VISITS, GRAFANA_DAU };
#define GRAFANA_METRICS 5

/* "uv"; and what people read. */
const char *grafana_metric_name(enum grafana_metric metric);
const char *grafana_metric_label(enum grafana_metric metric);

/* A series, or one figure, that was asked for.  Slices point into the query. */
struct grafana_target {
    struct slice ref_id; /* empty: none */
    enum grafana_metric metric;
    json_t *site_name; /* owned: what the site lies in, if one is named; or NULL */
    struct slice site;
    json_t *names;       /* owned: the pages as keys; NULL: the whole site */
    struct slice *pages; /* owned, n_pages of them: into names */
    size_t n_pages;
    json_t *set_name;  /* owned: what the page set lies in, if one is named; or NULL */
    struct slice set;  /* empty: none */
    bool nothing;      /* no page passes all filters */
    bool whole_window; /* one figure for the window, not a series */
    bool table;        /* rows instead of data points */
    enum step step;
    struct slice action; /* of dau */
    const struct zone *zone;
    struct window window;
    bool to_is_now;
    json_t *notices; /* owned: what Grafana shows in the corner of the panel; or NULL */
};

struct grafana_query {
    json_t *root; /* owned: the body */
    struct grafana_target *targets;
    size_t n_targets;
    size_t max_points; /* at most about so many points a series */
    int64_t interval_s;
};

/* Parse the exchange's body.  False: the response says what is wrong, with the refId of the target.
 * Release in either case. */
bool grafana_query_read(struct http_exchange *exchange, struct grafana_query *ret);
void grafana_query_release(struct grafana_query *query);

/* Add a notice to the target's series. @severity: info, warning. */
void grafana_notice(struct grafana_target *target, const char *severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The body as JSON, an object; empty is {}.  NULL: the response says what is wrong. */
json_t *grafana_body(struct http_exchange *exchange);

#endif
