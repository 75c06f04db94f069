#include "handlers/grafana/series_reply.h"

#include "handlers/question/visit_figures.h"
#include "handlers/question/window_reply.h"
#include "handlers/reply/reply.h"

/* The legend of a series, as "uv", "uv shop" or "uv shop /a, ..". */
static json_t *legend(const struct grafana_target *target)
{
    const char *name = grafana_metric_name(target->metric);
    struct slice page = target->n_pages > 0 ? target->pages[0] : target->set;
    bool site = target->site_name.n > 0;
    return json_sprintf("%s%s%.*s%s%.*s%s", name, site ? " " : "", site ? (int)target->site.n : 0,
        target->site.p, page.n > 0 ? " " : "", (int)page.n, page.n > 0 ? page.p : "",
        target->n_pages > 1 ? ", .." : "");
}

/* Add a point with @value to @points.  The reference to @value is taken over. */
static void add_value(
    json_t *points, const struct grafana_target *target, int64_t at_s, json_t *value)
{
    json_int_t at_ms = (json_int_t)at_s * 1000;
    json_array_append_new(points,
        target->table ? json_pack("[I,o]", at_ms, value) : json_pack("[o,I]", value, at_ms));
}

void grafana_add_count(
    json_t *points, const struct grafana_target *target, int64_t at_s, uint64_t value)
{
    add_value(points, target, at_s, json_integer(window_figure(value)));
}

void grafana_add_visits(
    json_t *points, const struct grafana_target *target, int64_t at_s, const uint64_t *values)
{
    struct visit_figures f;
    json_t *value = NULL;
    if (visit_figures_of(values, &f)) {
        value = json_real(target->metric == GRAFANA_BOUNCE_RATE       ? f.bounce_rate
                          : target->metric == GRAFANA_VIEWS_PER_VISIT ? f.views_per_visit
                                                                      : f.duration_s);
    }
    add_value(points, target, at_s, value != NULL ? value : json_null());
}

static json_t *columns_of(const struct grafana_target *target)
{
    return target->metric == GRAFANA_BREAKDOWN
               ? grafana_breakdown_columns(&target->breakdown)
               : json_pack("[{s:s,s:s},{s:o,s:s}]", "text", "Time", "type", "time", "text",
                     legend(target), "type", "number");
}

void grafana_add_series(json_t *answer, const struct grafana_target *target, json_t *points)
{
    json_t *series = json_object();
    if (target->ref_id.n > 0) {
        json_object_set_new(series, "refId", text_json(target->ref_id));
    }
    if (target->table) {
        json_object_set_new(series, "type", json_string("table"));
        json_object_set_new(series, "columns", columns_of(target));
        json_object_set_new(series, "rows", points);
    } else {
        json_object_set_new(series, "target", legend(target));
        json_object_set_new(series, "datapoints", points);
    }
    if (target->notices != NULL) {
        json_object_set_new(series, "meta", json_pack("{s:O}", "notices", target->notices));
    }
    json_array_append_new(answer, series);
}
